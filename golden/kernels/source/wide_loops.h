// The loops of stochastic steps, over `WideLanes`.
#pragma once

#include "chains.h"
#include "wide_steps.h"

namespace {

// The random bits outweigh everything else: the sums may stay in memory, and one function serves every size of a tile.
template <class Step>
COMPILED_ONCE void random_steps(int rows, int vectors, bool dot, int64_t steps, const void *a, const void *b, void *acc,
                  const Rule &rule) {
    constexpr int COLUMNS = columns_of<Step>;
    const Step step(rule);
    const WideRandom random(rule, rows, vectors);
    const float *x = static_cast<const float *>(a), *y = static_cast<const float *>(b);
    float *const sums = static_cast<float *>(acc);
    Doubles sum[Step::ROWS][Step::VECTORS], column[Step::VECTORS];
    for (int row = 0; row < rows; row++)
        for (int v = 0; v < vectors; v++) sum[row][v] = Step::load(sums + row * COLUMNS + v * Step::COUNT);
    for (int64_t k = 0; k < steps; k++, x += dot ? COLUMNS : Step::ROWS, y += COLUMNS) {
        const WideRandom::Step here = random.step(k);
        for (int v = 0; v < vectors; v++) column[v] = Step::load(y + v * Step::COUNT);
        for (int row = 0; row < rows; row++)
            for (int v = 0; v < vectors; v++) {
                const Doubles factor = dot ? Step::factors(x + v * Step::COUNT) : Step::all(x[row]);
                sum[row][v] = step(factor, column[v], sum[row][v], random.at(row, v, here));
            }
    }
    for (int row = 0; row < rows; row++)
        for (int v = 0; v < vectors; v++) Step::store(sums + row * COLUMNS + v * Step::COUNT, sum[row][v]);
}

template <class Step>
struct RandomLoops {
    template <int ROWS, int USED>
    static void chain_of(int64_t steps, const void *a, const void *b, void *acc, const Rule &rule) {
        random_steps<Step>(ROWS, USED, false, steps, a, b, acc, rule);
    }
    template <int USED>
    static void dot_of(int64_t steps, const void *a, const void *b, void *acc, const Rule &rule) {
        random_steps<Step>(1, USED, true, steps, a, b, acc, rule);
    }
};

// `count` is that of whole rows of a tile of the same kind.
template <class Step>
void random_join(int64_t count, const float *partial, float *total, float factor, const Rule &rule) {
    const Step step(rule);
    const int rows = static_cast<int>(count / columns_of<Step>);
    const WideRandom random(rule, rows, Step::VECTORS);
    const WideRandom::Step here = random.step(0);
    const Doubles factors = Step::all(factor);
    for (int row = 0; row < rows; row++)
        for (int v = 0; v < Step::VECTORS; v++, partial += Step::COUNT, total += Step::COUNT)
            Step::store(total, step(Step::load(partial), factors, Step::load(total), random.at(row, v, here)));
}

template <class Step>
const Tiles *random_tiles() {
    static const Tiles tiles = tiles_of<Step, RandomLoops<Step>>(Rounding::zero, random_join<Step>);
    return &tiles;
}

}  // namespace
