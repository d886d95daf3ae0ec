// The innermost loops of the vector paths: chains of steps over packed panels, with a tile of sums in registers.
//
// A class `Step` says what an element and a vector of elements are, how large a tile is, and what a step does. Included
// by each path after its target is set; everything here is local to the including file.
#pragma once

#include <cstdint>

#include "path.h"

#if defined(__clang__)
#define COMPILED_ONCE __attribute__((noinline))
#else
#define COMPILED_ONCE __attribute__((noinline, noclone))
#endif

namespace {

template <class Step>
constexpr int columns_of = Step::VECTORS * Step::COUNT;

template <class Step, int ROWS, int USED>
void chain(int64_t steps, const void *a, const void *b, void *acc, const Rule &rule) {
    using Element = typename Step::Element;
    using Vector = typename Step::Vector;
    constexpr int COLUMNS = columns_of<Step>;
    const Step step(rule);
    const Element *x = static_cast<const Element *>(a), *y = static_cast<const Element *>(b);
    Element *sums = static_cast<Element *>(acc);
    Vector sum[ROWS][USED];
#pragma GCC unroll 8
    for (int row = 0; row < ROWS; row++)
#pragma GCC unroll 8
        for (int v = 0; v < USED; v++) sum[row][v] = Step::load(sums + row * COLUMNS + v * Step::COUNT);
    for (int64_t k = 0; k < steps; k++, x += Step::ROWS, y += COLUMNS) {
        Vector column[USED];
#pragma GCC unroll 8
        for (int v = 0; v < USED; v++) column[v] = Step::load(y + v * Step::COUNT);
#pragma GCC unroll 8
        for (int row = 0; row < ROWS; row++) {
            const Vector factor = Step::all(x[row]);
#pragma GCC unroll 8
            for (int v = 0; v < USED; v++) sum[row][v] = step(factor, column[v], sum[row][v]);
        }
    }
#pragma GCC unroll 8
    for (int row = 0; row < ROWS; row++)
#pragma GCC unroll 8
        for (int v = 0; v < USED; v++) Step::store(sums + row * COLUMNS + v * Step::COUNT, sum[row][v]);
}

template <class Step, int USED>
void dot(int64_t steps, const void *a, const void *b, void *acc, const Rule &rule) {
    using Element = typename Step::Element;
    constexpr int COLUMNS = columns_of<Step>;
    const Step step(rule);
    const Element *x = static_cast<const Element *>(a), *y = static_cast<const Element *>(b);
    Element *sums = static_cast<Element *>(acc);
    typename Step::Vector sum[USED];
#pragma GCC unroll 8
    for (int v = 0; v < USED; v++) sum[v] = Step::load(sums + v * Step::COUNT);
    for (int64_t k = 0; k < steps; k++, x += COLUMNS, y += COLUMNS)
#pragma GCC unroll 8
        for (int v = 0; v < USED; v++)
            sum[v] = step(Step::factors(x + v * Step::COUNT), Step::load(y + v * Step::COUNT), sum[v]);
#pragma GCC unroll 8
    for (int v = 0; v < USED; v++) Step::store(sums + v * Step::COUNT, sum[v]);
}

// `count` is that of whole rows of a tile, hence of whole vectors.
template <class Step>
void join(int64_t count, const float *partial, float *total, float factor, const Rule &rule) {
    const Step step(rule);
    const typename Step::Vector factors = Step::all(factor);
    for (int64_t i = 0; i < count; i += Step::COUNT)
        Step::store(total + i, step(Step::load(partial + i), factors, Step::load(total + i)));
}

template <class Step>
struct PlainLoops {
    template <int ROWS, int USED>
    static constexpr Chain chain_of = chain<Step, ROWS, USED>;
    template <int USED>
    static constexpr Chain dot_of = dot<Step, USED>;
};

// The chains of every height and width of a tile.
template <class Step, class Loops>
struct ChainTable {
    Chain chains[Step::ROWS * Step::VECTORS];
    Chain dots[Step::VECTORS];

    ChainTable() { fill<Step::ROWS, Step::VECTORS>(); }

private:
    template <int ROW, int USED>
    void fill() {
        chains[(ROW - 1) * Step::VECTORS + USED - 1] = Loops::template chain_of<ROW, USED>;
        if constexpr (ROW == 1) dots[USED - 1] = Loops::template dot_of<USED>;
        if constexpr (USED > 1)
            fill<ROW, USED - 1>();
        else if constexpr (ROW > 1)
            fill<ROW - 1, Step::VECTORS>();
    }
};

template <class Step, class Loops = PlainLoops<Step>>
Tiles tiles_of(Rounding rounding, Join join) {
    static const ChainTable<Step, Loops> table;
    const int bytes = static_cast<int>(sizeof(typename Step::Element));
    return {Step::ROWS, columns_of<Step>, Step::COUNT, bytes, rounding, table.chains, table.dots, join};
}

}  // namespace
