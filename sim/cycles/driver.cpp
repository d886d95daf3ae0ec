// Drives one scenario into the shell around a unit, cycle by cycle, as sim.bench does in a simulator.
//
// Appended to the C++ that Yosys (CXXRTL) makes of the Verilog. TOP is the class of its top module, WATCH notes the
// values of all registers and READ those of all memories, both into the arrays of WATCHED words.

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace {

uint32_t ones[WATCHED], zeros[WATCHED];

template <size_t N> void note(const cxxrtl::value<N> &value, size_t at) {
    for (size_t word = 0; word < value.chunks; word++) {
        ones[at + word] |= value.data[word];
        zeros[at + word] |= ~value.data[word];
    }
}

template <size_t N> const cxxrtl::value<N> &now(const cxxrtl::value<N> &value) { return value; }
template <size_t N> const cxxrtl::value<N> &now(const cxxrtl::wire<N> &wire) { return wire.curr; }

template <size_t N> void set(cxxrtl::value<N> &port, const uint32_t *words) {
    std::memcpy(port.data, words, sizeof port.data);
}

struct Bench {
    TOP top;
    uint64_t edges = 0;

    void edge() {
        top.p_clk.set<bool>(false);
        top.step();
        top.p_clk.set<bool>(true);
        top.step();
        top.p_clk.set<bool>(false);
        top.step();
        WATCH;
        // What is written stays for a while: memories are looked at now and then.
        if (++edges % 11 == 0) {
            READ;
        }
    }
};

const uint64_t NOTHING = ~uint64_t(0);

}  // namespace

// One scenario from a reset to the next one, or to its end.
struct Episode {
    // in: what is driven, of payloads `next` to `stop`; pauses and chunks may be absent
    const uint32_t *payloads, *chunks, *gaps, *pauses;
    const uint8_t *offers, *takes, *clears;
    uint64_t next, stop, offer_count, take_count, clear_count, expected, cut, patience, surplus, on_sight;
    // out
    uint32_t *answers;
    uint64_t *counts;
    uint64_t answer_room, answer_count, accepted, first_cycle, last_cycle, fell, changed, blocked, answered;
    uint64_t met_clears;
};

extern "C" void *create() { return new Bench; }
extern "C" void destroy(void *bench) { delete static_cast<Bench *>(bench); }
extern "C" const uint32_t *seen(int value) { return value ? ones : zeros; }

extern "C" void reset(void *given, int cycles) {
    TOP &top = static_cast<Bench *>(given)->top;
    top.p_rst.set<bool>(true);
    for (int cycle = 0; cycle < cycles; cycle++)
        static_cast<Bench *>(given)->edge();
    top.p_rst.set<bool>(false);
    top.p_valid.set<bool>(false);
    top.p_take.set<bool>(false);
    static_cast<Bench *>(given)->edge();
}

extern "C" void run(void *given, Episode *episode) {
    Bench &bench = *static_cast<Bench *>(given);
    TOP &top = bench.top;
    Episode &e = *episode;
    const uint64_t first = e.next;
    bool offering = false, refused = false;
    uint64_t quiet = 0, pause = e.pauses ? e.pauses[e.next] : 0;
    uint32_t held[ANSWER_WORDS];
    e.answer_count = e.accepted = e.first_cycle = e.last_cycle = e.blocked = e.answered = 0;
    e.fell = e.changed = NOTHING;
    e.met_clears = 0;
    bool clearing = false;
    for (uint64_t cycle = 1;; cycle++) {
        bool active = false;
        // The sink decides for the coming edge.
        e.answered = now(top.p_answered).data[0];
        const bool takes = e.takes[cycle % e.take_count] && (e.answered || !e.on_sight);
        top.p_take.set<bool>(takes);
        const uint32_t *answer = now(top.p_answer).data;
        if (e.answered) {
            if (refused && std::memcmp(held, answer, sizeof held) && e.changed == NOTHING)
                e.changed = cycle;
            refused = !takes;
            std::memcpy(held, answer, sizeof held);
            if (takes) {
                if (e.answer_count < e.answer_room)
                    std::memcpy(e.answers + e.answer_count * ANSWER_WORDS, answer, sizeof held);
                e.answer_count++;
                active = true;
            }
        } else {
            if (refused && e.fell == NOTHING)
                e.fell = cycle;
            refused = false;
        }
        // The source goes on if what it offered was taken at the last edge.
        const bool went = offering && now(top.p_accepted).data[0];
        e.blocked = offering && !went;
        if (went) {
            if (!e.first_cycle)
                e.first_cycle = cycle;
            e.last_cycle = cycle;
            e.next++;
            e.accepted++;
            active = true;
            if (e.pauses && e.next < e.stop)
                pause = e.pauses[e.next];
        }
        if (!e.blocked) {
            bool offers = e.next < e.stop && e.offers[cycle % e.offer_count];
            if (offers && pause) {
                pause--;
                offers = false;
            }
            if (offers)
                set(top.p_payload, e.payloads + e.next * PAYLOAD_STRIDE);
#if CHUNKS
            if (e.chunks && offers)
                set(top.p_chunk, e.chunks + e.next);
            else if (e.chunks && e.next > first)
                set(top.p_chunk, e.gaps + e.next - 1);
#endif
            top.p_valid.set<bool>(offers);
            offering = offers;
        }
        quiet = active ? 0 : quiet + 1;
        const bool is_cut = e.cut && cycle == e.cut;
        const bool is_done = e.next == e.stop && e.answer_count >= e.expected;
        // A unit that never stops answering would never be quiet.
        const bool ends =
            is_cut || quiet >= (is_done ? e.surplus : e.patience) || e.answer_count > e.expected + e.surplus;
#if COUNTERS
        // What is shown when the counters are cleared, and at the end, is added up.
        const bool clears = !ends && e.clears[cycle % e.clear_count];
        bool any = false;
        for (size_t at = 0; at < COUNTERS; at++) {
            const uint32_t count = now(top.p_counts).data[at];
            any = any || count;
            e.counts[at] += clears || ends ? count : 0;
        }
        e.met_clears += clearing && any;
        clearing = clears;
        top.p_clear__counts.set<bool>(clears);
#endif
        if (ends)
            return;
        bench.edge();
    }
}
