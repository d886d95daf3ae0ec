// A MatrixEngine, a master on its registers and a memory on its bus, clock cycle by clock cycle. The code of the unit,
// whose class is cxxrtl_design::p_top, comes before this file; WORD_BYTES is the width of the bus.
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <deque>

namespace {

template <size_t N> uint32_t *now(cxxrtl::value<N> &value) { return value.data; }
template <size_t N> uint32_t *now(cxxrtl::wire<N> &wire) { return wire.curr.data; }

struct Burst {
  uint64_t address, ready;
  unsigned beats, size;
};

constexpr unsigned kOkay = 0, kDecodeError = 3, kWords = WORD_BYTES / 4;

struct Bench {
  cxxrtl_design::p_top top;
  uint8_t *memory;
  uint64_t base, size, cycle = 0;
  // Bytes that have been read and written.
  uint64_t bytes_read = 0, bytes_written = 0;
  unsigned latency, most;
  std::deque<Burst> reads, writes;
  std::deque<uint64_t> answers;
  unsigned answer_code = kOkay;
  const char *fault = nullptr;
  // Of the write burst at the head of the queue: beats that have come.
  unsigned written = 0, given = 0;

  bool holds(uint64_t address) const { return address >= base && address - base <= size - WORD_BYTES; }

  // AXI4's rules for a burst, as far as this memory needs them.
  void take(std::deque<Burst> &queue, uint64_t address, unsigned len, unsigned size_code, unsigned kind) {
    unsigned bytes = 1u << size_code, beats = len + 1;
    uint64_t last = (address & ~uint64_t(bytes - 1)) + uint64_t(bytes) * beats - 1;
    if (kind != 1 && len) fault = "a burst that is not INCR";
    if (bytes > WORD_BYTES) fault = "a transfer wider than the bus";
    if ((address ^ last) >> 12) fault = "a burst across a boundary of 4 KiB";
    queue.push_back({address, cycle + latency, beats, size_code});
  }

  void settle() { top.step(); }

  // One cycle. Inputs of the registers' master have been set.
  void tick() {
    auto set = [](uint32_t *port, uint32_t value) { *port = value; };
    bool has_read = !reads.empty() && reads.front().ready <= cycle;
    set(now(top.p_m__axi__arready), reads.size() < most);
    set(now(top.p_m__axi__awready), writes.size() < most);
    set(now(top.p_m__axi__wready), !writes.empty());
    set(now(top.p_m__axi__rvalid), has_read);
    if (has_read) {
      Burst &burst = reads.front();
      uint64_t at = burst.address & ~uint64_t(WORD_BYTES - 1);
      bool there = holds(at);
      for (unsigned k = 0; k < kWords; k++) {
        uint32_t word = 0;
        if (there) std::memcpy(&word, memory + (at - base) + 4 * k, 4);
        now(top.p_m__axi__rdata)[k] = word;
      }
      set(now(top.p_m__axi__rresp), there ? kOkay : kDecodeError);
      set(now(top.p_m__axi__rlast), burst.beats == 1);
      set(now(top.p_m__axi__rid), 0);
    }
    bool has_answer = !answers.empty() && answers.front() >> 2 <= cycle;
    set(now(top.p_m__axi__bvalid), has_answer);
    if (has_answer) set(now(top.p_m__axi__bresp), answers.front() & 3);
    set(now(top.p_m__axi__bid), 0);
    settle();

    bool read = has_read && *now(top.p_m__axi__rready);
    bool answered = has_answer && *now(top.p_m__axi__bready);
    bool write = !writes.empty() && *now(top.p_m__axi__wvalid);
    bool asks_read = *now(top.p_m__axi__arvalid) && *now(top.p_m__axi__arready);
    bool asks_write = *now(top.p_m__axi__awvalid) && *now(top.p_m__axi__awready);
    if (write) store();
    if (asks_read)
      take(reads, wide(now(top.p_m__axi__araddr), ADDRESS_BITS), *now(top.p_m__axi__arlen),
           *now(top.p_m__axi__arsize), *now(top.p_m__axi__arburst));
    if (asks_write)
      take(writes, wide(now(top.p_m__axi__awaddr), ADDRESS_BITS), *now(top.p_m__axi__awlen),
           *now(top.p_m__axi__awsize), *now(top.p_m__axi__awburst));
    // All is settled, so that the registers take their next values at once; what follows from these settles with the
    // inputs of the next cycle.
    *now(top.p_aclk) = 1;
    top.eval();
    top.commit();
    *now(top.p_aclk) = 0;
    if (read) bytes_read += uint64_t(1) << reads.front().size, advance(reads);
    if (answered) answers.pop_front();
    cycle++;
  }

  static uint64_t wide(const uint32_t *port, unsigned bits) {
    return bits > 32 ? uint64_t(port[1]) << 32 | port[0] : port[0];
  }

  static bool advance(std::deque<Burst> &queue) {
    Burst &burst = queue.front();
    uint64_t bytes = uint64_t(1) << burst.size;
    burst.address = (burst.address & ~(bytes - 1)) + bytes;
    if (--burst.beats) return false;
    queue.pop_front();
    return true;
  }

  void store() {
    Burst &burst = writes.front();
    uint64_t at = burst.address & ~uint64_t(WORD_BYTES - 1);
    uint32_t strobes = *now(top.p_m__axi__wstrb);
    bytes_written += __builtin_popcount(strobes);
    if (holds(at)) {
      for (unsigned byte = 0; byte < WORD_BYTES; byte++)
        if (strobes >> byte & 1)
          memory[at - base + byte] = uint8_t(now(top.p_m__axi__wdata)[byte / 4] >> 8 * (byte % 4));
    } else if (strobes) {
      answer_code = kDecodeError;
    }
    if (bool(*now(top.p_m__axi__wlast)) != (burst.beats == 1)) fault = "WLAST beside the last beat of a burst";
    if (advance(writes)) {
      answers.push_back((cycle + 1 + latency) << 2 | answer_code);
      answer_code = kOkay;
    }
  }
};

} // namespace

extern "C" {
void *create(uint64_t base, uint64_t size, unsigned latency, unsigned most) {
  auto *bench = new Bench;
  // Pages of zeros, which the system gives when they are first used.
  bench->memory = static_cast<uint8_t *>(std::calloc(size, 1));
  bench->base = base, bench->size = size, bench->latency = latency, bench->most = most;
  if (!bench->memory) {
    delete bench;
    return nullptr;
  }
  *now(bench->top.p_aresetn) = 0;
  for (int k = 0; k < 4; k++) bench->tick();
  *now(bench->top.p_aresetn) = 1;
  bench->tick();
  return bench;
}

void destroy(void *given) {
  auto *bench = static_cast<Bench *>(given);
  std::free(bench->memory);
  delete bench;
}

uint8_t *memory(void *given) { return static_cast<Bench *>(given)->memory; }
const char *fault(void *given) { return static_cast<Bench *>(given)->fault; }
uint64_t cycles(void *given) { return static_cast<Bench *>(given)->cycle; }
uint64_t bytes_read(void *given) { return static_cast<Bench *>(given)->bytes_read; }
uint64_t bytes_written(void *given) { return static_cast<Bench *>(given)->bytes_written; }

// Both return the answer of the bus, -1 without one after so many cycles.
int read_register(void *given, uint32_t address, uint32_t *value, unsigned limit) {
  auto &bench = *static_cast<Bench *>(given);
  auto &top = bench.top;
  *now(top.p_s__axil__araddr) = address, *now(top.p_s__axil__arvalid) = 1, *now(top.p_s__axil__rready) = 1;
  for (bool asks = true; limit; limit--) {
    bench.settle();
    bool taken = asks && *now(top.p_s__axil__arready), answered = *now(top.p_s__axil__rvalid);
    if (answered) *value = *now(top.p_s__axil__rdata);
    int response = int(*now(top.p_s__axil__rresp));
    bench.tick();
    if (taken) asks = false, *now(top.p_s__axil__arvalid) = 0;
    if (answered) {
      *now(top.p_s__axil__rready) = 0;
      return response;
    }
  }
  return -1;
}

int write_register(void *given, uint32_t address, uint32_t value, unsigned limit) {
  auto &bench = *static_cast<Bench *>(given);
  auto &top = bench.top;
  *now(top.p_s__axil__awaddr) = address, *now(top.p_s__axil__awvalid) = 1;
  *now(top.p_s__axil__wdata) = value, *now(top.p_s__axil__wstrb) = 0xF, *now(top.p_s__axil__wvalid) = 1;
  *now(top.p_s__axil__bready) = 1;
  for (; limit; limit--) {
    bench.settle();
    bool address_taken = *now(top.p_s__axil__awvalid) && *now(top.p_s__axil__awready);
    bool data_taken = *now(top.p_s__axil__wvalid) && *now(top.p_s__axil__wready);
    bool answered = *now(top.p_s__axil__bvalid);
    int response = int(*now(top.p_s__axil__bresp));
    bench.tick();
    if (address_taken) *now(top.p_s__axil__awvalid) = 0;
    if (data_taken) *now(top.p_s__axil__wvalid) = 0;
    if (answered) {
      *now(top.p_s__axil__bready) = 0;
      return response;
    }
  }
  return -1;
}

// Run until the interrupt, a fault, or for so many cycles; return whether there is an interrupt.
int run(void *given, uint64_t limit) {
  auto &bench = *static_cast<Bench *>(given);
  for (; limit && !bench.fault; limit--) {
    if (*now(bench.top.p_interrupt)) return 1;
    bench.tick();
  }
  return int(*now(bench.top.p_interrupt));
}
}
