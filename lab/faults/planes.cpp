// One netlist, 512 faults: every net is a plane of 512 bits, and bit k of each plane belongs to a copy of the unit that
// has fault k in it. Copy 0 has none. All are driven as the cocotb bench drives one (sim/bench): the same payloads in
// the same order, offered and taken in the same cycles, and each copy goes on to its next payload when it has taken one.
//
// As long as a copy does what copy 0 does, nothing is done for it but the gates. Once it differs at a port, it has a
// place of its own among payloads and expected answers.

#include <cstdlib>
#include <cstring>
#include <vector>

// Why a copy is told from what it should be; as in machine.py.
enum { SAME, WRONG, UNEXPECTED, MISSING, STUCK, UNSTEADY, CYCLES };

static inline bool bit(const plane &value, int copy) { return value[copy >> 6] >> (copy & 63) & 1; }
static inline void put(plane &value, int copy, bool one) {
  const uint64_t mask = 1ull << (copy & 63);
  value[copy >> 6] = one ? value[copy >> 6] | mask : value[copy >> 6] & ~mask;
}
static inline bool any(const plane &value) {
  uint64_t word = 0;
  for (int at = 0; at < 8; at++) word |= value[at];
  return word != 0;
}

struct Ports {
  uint32_t payloads, answers, chunks, reset, inverted, valid, ready, answered, take;
  const uint32_t *payload, *answer, *chunk;
  // Bits of the answer that say to which queue it belongs: those of its register, and those that are 0 in a result.
  uint32_t registers, errors;
  const uint32_t *in_register, *in_error;
};

// From one reset to the next: payloads `start` to `payloads`, and the answers that belong to them.
struct Scenario {
  uint64_t start, payloads, payload_limbs, answers, answer_limbs, offers, takes, queues, cycles, cut, longest;
  // `gap`: the chunk length while nothing is offered behind a payload. `pause`: cycles at least without an offer ahead of
  // one; may be absent. `end`: which payload completes each answer; may be absent.
  const uint64_t *payload, *answer, *chunk, *gap, *pause, *end;
  const uint8_t *offer, *take;
  const uint64_t *first;  // of each queue in `order`, and the end
  const uint64_t *order;  // answers, queue by queue
};

struct Copy {
  uint64_t next = 0, quiet = 0, answered = 0, first = 0, last = 0, shown = ~0ull, chunk = 0, pause = 0, needed = 0;
  bool offering = false, refused = false, ended = false;
  std::vector<uint64_t> word, seen;
};

// What a run says of conjectures: for each register, in which copies it has differed from copy 0, at all and while each
// guard was true; and the guards themselves, cycle by cycle.
struct Watch {
  uint64_t guards = 0, words = 0, cycles = 0, most = 0;
  const uint32_t *guard;  // nets, and whether 1 makes it true
  plane *differed;        // (guards + 1) rows of registers
  uint64_t *trace;
};

struct Machine {
  Circuit circuit;
  uint32_t registers;
  std::vector<uint32_t> q, d;
  plane *value, *held;
  std::vector<uint32_t> start;
  Ports ports;
  Watch watch;

  void evaluate() { circuit.evaluate(value); }

  void clock() {
    for (uint32_t k = 0; k < registers; k++) held[k] = value[d[k]];
    for (uint32_t k = 0; k < registers; k++) value[q[k]] = held[k];
    if (watch.guards) look();
  }

  void look() {
    std::vector<uint64_t> on;
    for (uint64_t guard = 0; guard < watch.guards; guard++)
      if (bit(value[watch.guard[2 * guard]], 0) == bool(watch.guard[2 * guard + 1])) {
        on.push_back(guard + 1);
        if (watch.cycles < watch.most) watch.trace[watch.cycles * watch.words + guard / 64] |= 1ull << guard % 64;
      }
    watch.cycles++;
    for (uint32_t k = 0; k < registers; k++) {
      const plane differs = value[q[k]] ^ all(bit(value[q[k]], 0));
      if (!any(differs)) continue;
      watch.differed[k] |= differs;
      for (uint64_t guard : on) watch.differed[guard * registers + k] |= differs;
    }
  }
};

extern "C" Machine *make(const Circuit *circuit, uint32_t registers, const uint32_t *register_rows) {
  Machine *machine = new Machine;
  machine->circuit = *circuit;
  machine->registers = registers;
  const uint32_t nets = circuit->nets;
  machine->value = static_cast<plane *>(aligned_alloc(64, sizeof(plane) * nets));
  machine->held = static_cast<plane *>(aligned_alloc(64, sizeof(plane) * (registers + 1)));
  for (uint32_t net = 0; net < nets; net++) machine->value[net] = all(net == 1);
  for (uint32_t k = 0; k < registers; k++) {
    machine->q.push_back(register_rows[3 * k]);
    machine->d.push_back(register_rows[3 * k + 1]);
    machine->start.push_back(register_rows[3 * k + 2]);
  }
  return machine;
}

extern "C" void power_up(Machine *machine) {
  const Ports &ports = machine->ports;
  plane *v = machine->value;
  for (uint32_t k = 0; k < machine->registers; k++) v[machine->q[k]] = all(machine->start[k]);
  for (uint32_t k = 0; k < ports.payloads; k++) v[ports.payload[k]] = all(false);
  for (uint32_t k = 0; k < ports.chunks; k++) v[ports.chunk[k]] = all(false);
  v[ports.valid] = v[ports.take] = all(false);
}

extern "C" void connect(Machine *machine, const Ports *ports) { machine->ports = *ports; }
extern "C" void select_copy(Machine *machine, uint32_t net, uint32_t copy) { put(machine->value[net], copy, true); }
extern "C" void observe(Machine *machine, uint64_t guards, const uint32_t *guard, plane *differed, uint64_t most,
                        uint64_t *trace) {
  machine->watch = {guards, (guards + 63) / 64, 0, most, guard, differed, trace};
}
extern "C" void destroy(Machine *machine) {
  free(machine->value);
  free(machine->held);
  delete machine;
}

// Reset all copies for some cycles, in which the streams go on as they were, and leave them alone for another one.
extern "C" void reset(Machine *machine, uint64_t cycles) {
  const Ports &ports = machine->ports;
  plane *v = machine->value;
  for (uint64_t cycle = 0; cycle <= cycles; cycle++) {
    const bool on = cycle < cycles;
    if (ports.reset) v[ports.reset] = all(on != bool(ports.inverted));
    if (!on) v[ports.valid] = v[ports.take] = all(false);
    machine->evaluate();
    machine->clock();
  }
}

// One episode. `caught[k]` is why copy k has been told from a right one, now or earlier; copies that
// have been are left alone. Returns the cycles that it took.
extern "C" uint64_t run(Machine *machine, const Scenario *given, uint32_t *caught) {
  const Ports &ports = machine->ports;
  const Scenario &scenario = *given;
  plane *v = machine->value;
  std::vector<Copy> copies(CASES);
  std::vector<bool> alone(CASES, false);
  std::vector<int> lonely{0};
  alone[0] = true;
  for (Copy &copy : copies) {
    copy.next = scenario.start;
    if (scenario.pause && scenario.start < scenario.payloads) copy.pause = scenario.pause[scenario.start];
  }
  copies[0].seen.assign(scenario.queues, 0);
  plane followers = all(true), acceptance = all(false), offering = all(false);
  put(followers, 0, false);
  for (int copy = 0; copy < CASES; copy++)
    if (caught[copy]) put(followers, copy, false);
  std::vector<uint64_t> word(scenario.answer_limbs);

  const auto leave = [&](int copy, const Copy &as) {
    if (alone[copy] || caught[copy]) return;
    alone[copy] = true;
    put(followers, copy, false);
    copies[copy] = as;
    lonely.push_back(copy);
  };
  const auto convict = [&](int copy, uint32_t why) {
    if (caught[copy]) return;
    caught[copy] = why;
    copies[copy].ended = true;
  };

  uint64_t cycle = 0;
  while (true) {
    cycle++;
    // -- what has been accepted, and what is offered next
    const bool leader_accepted = bit(acceptance, 0);
    const plane deviant = followers & offering & (acceptance ^ all(leader_accepted));
    if (any(deviant)) {
      const Copy before = copies[0];
      for (int copy = 1; copy < CASES; copy++)
        if (bit(deviant, copy)) leave(copy, before);
    }
    bool changed = cycle == 1;
    for (int at : lonely) {
      Copy &copy = copies[at];
      if (copy.ended && at) {
        changed |= bit(offering, at);
        put(offering, at, false);
        copy.offering = false;
        continue;
      }
      copy.quiet++;
      bool offers = copy.offering;
      if (copy.offering && bit(acceptance, at)) {
        copy.first = copy.first ? copy.first : cycle;
        copy.last = cycle;
        copy.next++;
        copy.quiet = 0;
        offers = false;
        if (scenario.pause && copy.next < scenario.payloads) copy.pause = scenario.pause[copy.next];
      }
      if (!offers) {
        offers = copy.next < scenario.payloads && scenario.offer[cycle % scenario.offers];
        if (offers && copy.pause) {
          copy.pause--;
          offers = false;
        }
        changed |= offers || copy.offering;
        copy.offering = offers;
        if (offers) {
          copy.shown = copy.next;
          copy.chunk = scenario.chunk[copy.next];
        } else if (copy.next > scenario.start) {
          changed |= copy.chunk != scenario.gap[copy.next - 1];
          copy.chunk = scenario.gap[copy.next - 1];
        }
      }
      put(offering, at, offers);
    }
    offering = (offering & ~followers) | (followers & all(copies[0].offering));
    if (changed) {
      v[ports.valid] = offering;
      const Copy &leader = copies[0];
      if (leader.shown < scenario.payloads) {
        const uint64_t *payload = scenario.payload + leader.shown * scenario.payload_limbs;
        for (uint32_t k = 0; k < ports.payloads; k++) v[ports.payload[k]] = all(payload[k >> 6] >> (k & 63) & 1);
      }
      for (uint32_t k = 0; k < ports.chunks; k++) v[ports.chunk[k]] = all(leader.chunk >> k & 1);
      for (int at : lonely) {
        const Copy &copy = copies[at];
        if (copy.chunk != leader.chunk)
          for (uint32_t k = 0; k < ports.chunks; k++) put(v[ports.chunk[k]], at, copy.chunk >> k & 1);
        if (copy.shown == leader.shown || copy.shown >= scenario.payloads) continue;
        const uint64_t *payload = scenario.payload + copy.shown * scenario.payload_limbs;
        for (uint32_t k = 0; k < ports.payloads; k++) put(v[ports.payload[k]], at, payload[k >> 6] >> (k & 63) & 1);
      }
    }
    const bool takes = scenario.take[cycle % scenario.takes];
    v[ports.take] = all(takes);
    machine->evaluate();

    // -- answers
    const bool leader_answers = bit(v[ports.answered], 0);
    plane differs = v[ports.answered] ^ all(leader_answers);
    if (leader_answers)
      for (uint32_t k = 0; k < ports.answers; k++) {
        const plane &answer = v[ports.answer[k]];
        differs |= answer ^ all(bit(answer, 0));
      }
    differs &= followers;
    if (any(differs)) {
      const Copy before = copies[0];
      for (int copy = 1; copy < CASES; copy++)
        if (bit(differs, copy)) leave(copy, before);
    }
    bool leader_is_through = false;
    size_t kept = 0;
    for (size_t index = 0; index < lonely.size(); index++) {
      const int at = lonely[index];
      Copy &copy = copies[at];
      if (!copy.ended || !at) {
        if (bit(v[ports.answered], at)) {
          std::fill(word.begin(), word.end(), 0);
          for (uint32_t k = 0; k < ports.answers; k++) word[k >> 6] |= uint64_t(bit(v[ports.answer[k]], at)) << (k & 63);
          if (copy.refused && copy.word != word) convict(at, UNSTEADY);
          copy.refused = !takes;
          copy.word = word;
          if (takes) {
            uint64_t queue = 0, error = 0;
            for (uint32_t k = 0; k < ports.registers; k++)
              queue |= (word[ports.in_register[k] >> 6] >> (ports.in_register[k] & 63) & 1) << k;
            for (uint32_t k = 0; k < ports.errors; k++)
              error |= word[ports.in_error[k] >> 6] >> (ports.in_error[k] & 63) & 1;
            queue = 2 * queue + error;
            copy.quiet = 0;
            copy.answered++;
            if (queue >= scenario.queues || scenario.first[queue] + copy.seen[queue] >= scenario.first[queue + 1])
              convict(at, UNEXPECTED);
            else {
              const uint64_t number = scenario.order[scenario.first[queue] + copy.seen[queue]++];
              if (memcmp(scenario.answer + number * scenario.answer_limbs, word.data(), 8 * word.size()))
                convict(at, WRONG);
              if (scenario.end && scenario.end[number] + 1 > copy.needed) copy.needed = scenario.end[number] + 1;
            }
          }
        } else if (copy.refused) {
          convict(at, UNSTEADY);
        }
        const bool done = copy.next == scenario.payloads && copy.answered >= scenario.answers;
        if (scenario.cut == cycle) {
          // What had not been accepted cannot be answered.
          if (copy.needed > copy.next) convict(at, UNEXPECTED);
        } else if (copy.quiet >= (done ? 40 : 400) && !copy.ended) {
          copy.ended = true;
          if (copy.next < scenario.payloads) convict(at, STUCK);
          else if (copy.answered < scenario.answers) convict(at, MISSING);
          else if (scenario.cycles && copy.last - copy.first + 1 != scenario.cycles) convict(at, CYCLES);
        }
      }
      if (!at) leader_is_through = copy.ended;
      // Caught copies go; the others keep their order.
      if (!at || !caught[at]) lonely[kept++] = at;
      else put(offering, at, false);
    }
    lonely.resize(kept);
    if (scenario.cut == cycle) break;
    acceptance = v[ports.valid] & v[ports.ready];
    machine->clock();
    if (leader_is_through) {
      bool waiting = false;
      for (int at : lonely) waiting |= at && !copies[at].ended;
      if (!waiting || cycle >= scenario.longest) break;
    }
  }
  return cycle;
}
