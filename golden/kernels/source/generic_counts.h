// The loops of any format in every mode, in plain C++, around the steps of counting_steps.h.
#pragma once

#include "counting_steps.h"
#include "generic_modes.h"

namespace {

// In tiles of `ROWS` by `COLUMNS`; of random bits the columns are those of a generic tile.
template <Mode MODE, class Words, int ROWS, int COLUMNS>
void counted_chain(int rows, int columns, bool dot, int64_t steps, const void *a, const void *b, void *acc,
                   const Rule &rule, const Tally &tally) {
    const CountingStep<MODE> step(rule);
    const TileWords<MODE, Words> random(rule, rows);
    const float *x = static_cast<const float *>(a), *y = static_cast<const float *>(b);
    float *const sums = static_cast<float *>(acc);
    uint32_t words[GENERIC_COLUMNS] = {};
    for (int64_t k = 0; k < steps; k++, x += dot ? COLUMNS : ROWS, y += COLUMNS)
        for (int row = 0; row < rows; row++) {
            random.fill(row, k, words);
            for (int column = 0; column < columns; column++) {
                const int i = row * COLUMNS + column;
                const float factor = dot ? x[column] : x[row];
                sums[i] = step(factor, y[column], sums[i], words[column % GENERIC_COLUMNS], tally, i);
            }
        }
}

// `count` is that of whole rows of a generic tile.
template <Mode MODE, class Words>
void counted_join(int64_t count, const float *partial, float *total, float factor, const Rule &rule,
                  const Tally &tally) {
    const CountingStep<MODE> step(rule);
    const int rows = static_cast<int>(count / GENERIC_COLUMNS);
    const TileWords<MODE, Words> random(rule, rows);
    uint32_t words[GENERIC_COLUMNS] = {};
    for (int row = 0; row < rows; row++) {
        random.fill(row, 0, words);
        for (int column = 0; column < GENERIC_COLUMNS; column++) {
            const int i = row * GENERIC_COLUMNS + column;
            total[i] = step(partial[i], factor, total[i], words[column], tally, i);
        }
    }
}

template <Mode MODE, class Words>
const Counted *generic_counted() {
    constexpr CountedChain chain = counted_chain<MODE, Words, GENERIC_ROWS, GENERIC_COLUMNS>;
    static const Counted counted = {chain, chain, counted_join<MODE, Words>};
    return &counted;
}

template <class Step>
Tiles generic_tiles(const Counted *counted = nullptr) {
    static const Chain chains[GENERIC_ROWS] = {generic_chain<Step, 1>, generic_chain<Step, 2>, generic_chain<Step, 3>,
                                               generic_chain<Step, 4>};
    static const Chain dots[1] = {generic_dot<Step>};
    return {GENERIC_ROWS, GENERIC_COLUMNS, GENERIC_COLUMNS, 4, Rounding::nearest, chains, dots, generic_join<Step>, counted};
}

const Tiles GENERIC_TILES = generic_tiles<GenericStep>(generic_counted<Mode::nearest_even, ScalarPhilox>());
const Tiles GENERIC_FLUSHED_TILES = generic_tiles<GenericFlushedStep>();

template <Mode MODE, class Words>
InMode generic_in_mode() {
    static const Chain chains[GENERIC_ROWS] = {chain_in_mode<MODE, Words, 1>, chain_in_mode<MODE, Words, 2>,
                                               chain_in_mode<MODE, Words, 3>, chain_in_mode<MODE, Words, 4>};
    static const Chain dots[1] = {dot_in_mode<MODE, Words>};
    static const Tiles tiles = {GENERIC_ROWS,      GENERIC_COLUMNS, GENERIC_COLUMNS, 4,
                                Rounding::nearest, chains,          dots,            join_in_mode<MODE, Words>,
                                generic_counted<MODE, Words>()};
    return {&tiles, nullptr, nullptr, nullptr, nullptr, nullptr, convert_in_mode<MODE, Words>};
}

// All modes on the generic tiles; to nearest even has its own.
template <class Words>
void add_generic_modes(Path &path) {
#define CBFLOAT_ADD(name, ...) \
    if constexpr (Mode::name != Mode::nearest_even) path.in(Mode::name) = generic_in_mode<Mode::name, Words>();
    CBFLOAT_MODES(CBFLOAT_ADD)
#undef CBFLOAT_ADD
}

}  // namespace
