// How many of some values have each exponent: a histogram of contiguous values.
#pragma once

#include "conversion.h"

constexpr int FIELDS = 255;                                              // exponent fields of finite floats
constexpr int ZEROS = FIELDS, INFINITE = FIELDS + 1, NANS = FIELDS + 2;  // and what is counted apart
constexpr int SLOTS = FIELDS + 3;
constexpr int64_t HISTOGRAM_VALUES = 16384;  // of a block

// Numbers are added to `slots`.
struct Exponents {
    const void *values;
    int64_t count;
    uint64_t *slots;
    Memory memory;
    int32_t padding;
};

namespace {

struct ExponentsMemory {
    uint32_t slots[SLOTS];
};
struct ExponentsState {};

INLINE int slot_of(float x) {
    const uint32_t magnitude = bits_of(x) & MAGNITUDE;
    if (magnitude == 0) return ZEROS;
    if (magnitude < INFINITY_BITS) return static_cast<int>(magnitude >> FLOAT_FRACTION);
    return magnitude == INFINITY_BITS ? INFINITE : NANS;
}

INLINE void exponents_block(const Exponents &given, Block block, ExponentsMemory &shared) {
    const int64_t first = block.number * HISTOGRAM_VALUES;
    Threads<ExponentsState> threads;
    threads.each([&](ExponentsState &, int thread) {
        for (int slot = thread; slot < SLOTS; slot += THREADS) shared.slots[slot] = 0;
    });
    threads.each([&](ExponentsState &, int thread) {
        for (int64_t i = first + thread; i < first + HISTOGRAM_VALUES && i < given.count; i += THREADS)
            add_to(&shared.slots[slot_of(load_value(given.memory, given.values, i))], 1u);
    });
    threads.each([&](ExponentsState &, int thread) {
        for (int slot = thread; slot < SLOTS; slot += THREADS)
            if (shared.slots[slot]) add_to(given.slots + slot, uint64_t{shared.slots[slot]});
    });
}

}  // namespace
