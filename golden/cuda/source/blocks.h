// Arrays rounded to blocks of narrow numbers with one scale (golden.mx): the scale of a block is a power of two, so that
// an element times it is the value rounded to the element's format with another bias.
#pragma once

#include "rounding.h"
#include "threads.h"

namespace {

constexpr int LEAST_SCALE = -127, LARGEST_SCALE = 127;

struct BlocksMemory {
    uint32_t largest[THREADS];
};
struct BlocksState {};

// The exponent of a finite magnitude's leading digit; of 0, less than of any other.
INLINE int leading_exponent(uint32_t magnitude) {
    const int field = static_cast<int>(magnitude >> FLOAT_FRACTION);
    if (field) return field - 127;
    return static_cast<int>(bits_of(static_cast<float>(magnitude)) >> FLOAT_FRACTION) - 127 - 149;
}

// One block of the array.
struct BlockPlace {
    INLINE BlockPlace(const Blocks &given, int64_t number) {
        const int64_t in_a_row = (given.length + given.block - 1) / given.block;
        const int64_t column = number % in_a_row * given.block;
        begin = number / in_a_row * given.length + column;
        count = given.length - column < given.block ? given.length - column : given.block;
    }
    int64_t begin, count;
};

// `lanes` neighbouring threads have a block.
INLINE void round_blocks_block(const Blocks &given, Block block, BlocksMemory &shared) {
    const int lanes = given.lanes;
    const auto number_of = [&](int thread) { return block.number * (THREADS / lanes) + thread / lanes; };
    Threads<BlocksState> threads;
    threads.each([&](BlocksState &, int thread) {
        uint32_t largest = 0;
        if (number_of(thread) < given.blocks) {
            const BlockPlace place(given, number_of(thread));
            for (int64_t i = thread % lanes; i < place.count; i += lanes) {
                const uint32_t magnitude = bits_of(load_value(given.memory, given.values, place.begin + i)) & MAGNITUDE;
                largest = magnitude > largest ? magnitude : largest;
            }
        }
        shared.largest[thread] = largest;
    });
    threads.each([&](BlocksState &, int thread) {
        if (number_of(thread) >= given.blocks) return;
        uint32_t of_all = 0;
        for (int i = 0; i < lanes; i++) {
            const uint32_t other = shared.largest[thread / lanes * lanes + i];
            of_all = other > of_all ? other : of_all;
        }
        const bool is_number = of_all < INFINITY_BITS;
        int scale = leading_exponent(of_all) - given.emax;
        scale = scale < LEAST_SCALE ? LEAST_SCALE : scale > LARGEST_SCALE ? LARGEST_SCALE : scale;
        Target target = given.target;
        target.bias -= scale;
        const AnyRounder round(target, Mode::nearest_even, 0, true);
        const BlockPlace place(given, number_of(thread));
        for (int64_t i = thread % lanes; i < place.count; i += lanes) {
            const float value = load_value(given.memory, given.values, place.begin + i);
            store_value(given.memory, given.result, place.begin + i, is_number ? round(value) : float_of(FLOAT_NAN));
        }
    });
}

}  // namespace
