// Streams the reductions of a matrix product through the generated Verilog of hdl.MultiplyAccumulate.
//
// Appended to the C++ that Yosys (CXXRTL) makes of the Verilog; TOP is the class of its top module, and the constants in
// capitals are the offsets of the fields in its payloads.

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

namespace {

// A register of the unit, and the outputs of the product that are reduced in it, one after the other.
struct Slot {
    unsigned reg;
    bool busy = false;
    size_t output = 0;
    size_t k = 0;
    std::deque<size_t> awaited;
};

}  // namespace

// C = A @ B for A of m rows and B of n columns, both k long; returns the cycles taken, or 0 if the unit stopped
// answering, named a wrong register, or reported an error. Counts are those of a unit with counters.
extern "C" uint64_t stream(const uint16_t *a, const uint16_t *b, size_t m, size_t k, size_t n, unsigned format,
                           unsigned level, unsigned chunk, const unsigned *registers, size_t register_count,
                           uint32_t *results, uint8_t *flags, uint32_t *counts) {
    TOP top;
    std::vector<Slot> slots;
    for (size_t at = 0; at < register_count; at++)
        slots.push_back(Slot{registers[at]});
    std::vector<int> slot_of(1u << REGISTER_BITS, -1);
    for (size_t at = 0; at < register_count; at++)
        slot_of[registers[at]] = static_cast<int>(at);

    top.p_chunk.set<uint32_t>(chunk);
    top.p_o____ready.set<bool>(true);
    const size_t outputs = m * n;
    size_t started = 0, answered = 0, turn = 0;
    uint64_t cycles = 0, silent = 0;
    while (answered < outputs) {
        if (++silent > MOST_SILENT_CYCLES + k * (chunk ? 2 : 1) * register_count)
            return 0;
        Slot &slot = slots[turn];
        if (!slot.busy && started < outputs) {
            slot.busy = true;
            slot.output = started++;
            slot.k = 0;
        }
        const bool offers = slot.busy;
        if (offers) {
            const uint64_t left = a[slot.output / n * k + slot.k], right = b[slot.k * n + slot.output % n];
            top.p_i____payload.set<uint64_t>(left << A | right << B | uint64_t(format) << FORMAT |
                                             uint64_t(level) << LEVEL | uint64_t(slot.reg) << REGISTER |
                                             uint64_t(slot.k == 0) << FIRST | uint64_t(slot.k + 1 == k) << LAST);
        }
        top.p_i____valid.set<bool>(offers);
        top.p_clk.set<bool>(false);
        top.step();
        const bool taken = offers && top.p_i____ready.get<bool>();
        if (top.p_o____valid.get<bool>()) {
            const uint64_t answer = top.p_o____payload.get<uint64_t>();
            const int from = slot_of[answer >> ANSWER_REGISTER & ((1u << REGISTER_BITS) - 1)];
            if (from < 0 || slots[from].awaited.empty() || (answer >> ERROR & 3) != 0)
                return 0;
            const size_t output = slots[from].awaited.front();
            slots[from].awaited.pop_front();
            results[output] = static_cast<uint32_t>(answer >> RESULT);
            flags[output] = answer >> FLAGS & 31;
            answered++;
            silent = 0;
        }
        top.p_clk.set<bool>(true);
        top.step();
        cycles++;
        if (taken && ++slot.k == k) {
            slot.awaited.push_back(slot.output);
            slot.busy = false;
        }
        if (taken || !offers)
            turn = (turn + 1) % register_count;
    }
#if COUNTERS
    // What was counted last is shown a little later than its result.
    top.p_i____valid.set<bool>(false);
    for (int cycle = 0; cycle < 4; cycle++) {
        top.p_clk.set<bool>(false);
        top.step();
        top.p_clk.set<bool>(true);
        top.step();
    }
    for (size_t at = 0; at < COUNTERS; at++)
        counts[at] = top.p_counts.data[at];
#else
    (void)counts;
#endif
    return cycles;
}
