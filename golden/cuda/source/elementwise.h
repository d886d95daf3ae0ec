// Arrays rounded to a format: four neighbours at a time, so that memory is read and written in wide pieces.
#pragma once

#include "rounding.h"
#include "threads.h"

namespace {

constexpr int NEIGHBOURS = 4, GROUPS = 4;                     // values of a thread: groups of neighbours
constexpr int PER_BLOCK = THREADS * NEIGHBOURS * GROUPS;

struct ElementwiseMemory {
    int unused;
};
struct ElementwiseState {};

INLINE bool is_aligned(const void *data) {
    return reinterpret_cast<uintptr_t>(data) % (NEIGHBOURS * sizeof(float)) == 0;
}

INLINE void load_neighbours(Memory memory, const void *data, int64_t index, float *to) {
    if (memory == Memory::float32) {
        const auto group = static_cast<const Group<float, NEIGHBOURS> *>(data)[index / NEIGHBOURS];
        for (int i = 0; i < NEIGHBOURS; i++) to[i] = group.at[i];
    } else {
        const auto group = static_cast<const Group<uint16_t, NEIGHBOURS> *>(data)[index / NEIGHBOURS];
        for (int i = 0; i < NEIGHBOURS; i++) to[i] = load_value(memory, group.at, i);
    }
}

INLINE void store_neighbours(Memory memory, void *data, int64_t index, const float *from) {
    if (memory == Memory::float32) {
        Group<float, NEIGHBOURS> group;
        for (int i = 0; i < NEIGHBOURS; i++) store_value(memory, group.at, i, from[i]);
        static_cast<Group<float, NEIGHBOURS> *>(data)[index / NEIGHBOURS] = group;
    } else {
        Group<uint16_t, NEIGHBOURS> group;
        for (int i = 0; i < NEIGHBOURS; i++) store_value(memory, group.at, i, from[i]);
        static_cast<Group<uint16_t, NEIGHBOURS> *>(data)[index / NEIGHBOURS] = group;
    }
}

// Rounds the value of an index.
class ElementRounder {
public:
    explicit INLINE ElementRounder(const Elementwise &given)
        : nearest_(given.target),
          any_(given.target, static_cast<Mode>(given.mode), given.random_bits),
          mode_(static_cast<Mode>(given.mode)),
          place_(place_of(given.key, given.call, given.random_bits)),
          first_(given.first_index),
          step_(given.step) {}

    INLINE float operator()(float x, int64_t index) const {
        if (mode_ == Mode::nearest_even) return nearest_(x);
        if (mode_ != Mode::stochastic) return any_(x);
        const PhiloxKeys keys(place_);
        const PhiloxIndex parts(first_ + static_cast<uint32_t>(index), place_.call, keys);
        return any_(x, random_word(parts, PhiloxStep(step_, keys), keys));
    }

private:
    const Converter nearest_;
    const AnyRounder any_;
    const Mode mode_;
    const Place place_;
    const uint32_t first_, step_;
};

INLINE void round_block(const Elementwise &given, Block block, ElementwiseMemory &) {
    const int64_t first = block.number * PER_BLOCK;
    const bool whole = first + PER_BLOCK <= given.count && is_aligned(given.values) && is_aligned(given.result);
    const ElementRounder round(given);
    Threads<ElementwiseState> threads;
    threads.each([&](ElementwiseState &, int thread) {
        if (whole) {
            float values[GROUPS][NEIGHBOURS];
            UNROLL
            for (int i = 0; i < GROUPS; i++)
                load_neighbours(given.memory, given.values, first + (i * THREADS + thread) * NEIGHBOURS, values[i]);
            UNROLL
            for (int i = 0; i < GROUPS; i++) {
                const int64_t index = first + (i * THREADS + thread) * NEIGHBOURS;
                UNROLL
                for (int j = 0; j < NEIGHBOURS; j++) values[i][j] = round(values[i][j], index + j);
                store_neighbours(given.result_memory, given.result, index, values[i]);
            }
            return;
        }
        for (int64_t index = first + thread; index < first + PER_BLOCK && index < given.count; index += THREADS)
            store_value(given.result_memory, given.result, index,
                        round(load_value(given.memory, given.values, index), index));
    });
}

}  // namespace
