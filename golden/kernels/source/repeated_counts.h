// Counts of accumulators in float where no instruction says how it rounds: first the sums of some steps, then what these
// did, in an environment that rounds down. What is compiled once by itself never leaves the environment that it is meant
// for. Over the class `Lanes`.
#pragma once

#include "environment.h"
#include "vector_counts.h"

namespace {

constexpr int REPEATED_STEPS = 32, REPEATED_ROWS = 3;

// The factors of one step stand `A_PITCH` and `B_PITCH` after those of the one before, in rows or in vectors.
template <int A_PITCH, int B_PITCH, bool DOT>
struct PackedFactors {
    const float *x, *y;
    Floats left(int64_t k, int row, int v) const {
        const float *const at = x + k * A_PITCH;
        return DOT ? Lanes::load(at + v * Lanes::COUNT) : Lanes::floats(at[row]);
    }
    Floats right(int64_t k, int v) const { return Lanes::load(y + k * B_PITCH + v * Lanes::COUNT); }
};

// What every step left, in `left`: steps by rows by vectors.
template <int ROWS, int USED, class Factors>
COMPILED_ONCE void sum_steps(int64_t steps, const Factors &factors, int pitch, float *sums, float *left) {
    Floats sum[ROWS][USED];
#pragma GCC unroll 8
    for (int row = 0; row < ROWS; row++)
#pragma GCC unroll 8
        for (int v = 0; v < USED; v++) sum[row][v] = Lanes::load(sums + row * pitch + v * Lanes::COUNT);
    for (int64_t k = 0; k < steps; k++)
#pragma GCC unroll 8
        for (int row = 0; row < ROWS; row++)
#pragma GCC unroll 8
            for (int v = 0; v < USED; v++, left += Lanes::COUNT) {
                sum[row][v] =
                    Lanes::multiply_add(factors.left(k, row, v), factors.right(k, v), sum[row][v]);
                Lanes::store(left, sum[row][v]);
            }
}

// Count what led from each sum to the next, and leave the last in `sums`.
template <class Counting, int ROWS, int USED, class Factors>
COMPILED_ONCE void count_steps(int64_t steps, const Factors &factors, int pitch, float *sums, const float *left,
                               const Tally &tally) {
    for (int row = 0; row < ROWS; row++)
        for (int v = 0; v < USED; v++) {
            const int at = row * pitch + v * Lanes::COUNT;
            typename Counting::Counts counters;
            counters.load(tally.at(at));
            Floats before = Lanes::load(sums + at);
            for (int64_t k = 0; k < steps; k++) {
                const Floats after = Lanes::load(left + ((k * ROWS + row) * USED + v) * Lanes::COUNT);
                Counting::count(factors.left(k, row, v), factors.right(k, v), before, after, counters);
                before = after;
            }
            counters.store(tally.at(at));
            Lanes::store(sums + at, before);
        }
}

template <class Counting, int ROWS, int USED, class Factors>
void repeat(int64_t steps, Factors factors, int a_pitch, int b_pitch, float *sums, const Tally &tally) {
    constexpr int COLUMNS = columns_of<Counting>;
    alignas(64) float left[REPEATED_STEPS * ROWS * USED * Lanes::COUNT];
    while (steps > 0) {
        const int64_t now = steps < REPEATED_STEPS ? steps : REPEATED_STEPS;
        sum_steps<ROWS, USED>(now, factors, COLUMNS, sums, left);
        {
            const Environment down(Rounding::down);
            count_steps<Counting, ROWS, USED>(now, factors, COLUMNS, sums, left, tally);
        }
        steps -= now;
        factors.x += now * a_pitch;
        factors.y += now * b_pitch;
    }
}

template <class Counting>
void repeated_chain(int rows, int columns, bool dot, int64_t steps, const void *a, const void *b, void *acc,
                    const Rule &, const Tally &tally) {
    constexpr int PITCH = Counting::ROWS, COLUMNS = columns_of<Counting>, ALL = Lanes::VECTORS;
    const float *const x = static_cast<const float *>(a), *const y = static_cast<const float *>(b);
    float *const sums = static_cast<float *>(acc);
    if (dot) {
        for (int column = 0; column < columns; column += Lanes::COUNT)
            repeat<Counting, 1, 1>(steps, PackedFactors<COLUMNS, COLUMNS, true>{x + column, y + column}, COLUMNS, COLUMNS,
                                   sums + column, tally.at(column));
        return;
    }
    const auto count = [&](auto height, auto width, int row) {
        constexpr int ROWS = decltype(height)::value, USED = decltype(width)::value;
        repeat<Counting, ROWS, USED>(steps, PackedFactors<PITCH, COLUMNS, false>{x + row, y}, PITCH, COLUMNS,
                                     sums + row * COLUMNS, tally.at(row * COLUMNS));
    };
    const auto count_all = [&](auto width) {
        int row = 0;
        for (; row + REPEATED_ROWS <= rows; row += REPEATED_ROWS)
            count(std::integral_constant<int, REPEATED_ROWS>{}, width, row);
        for (; row < rows; row++) count(std::integral_constant<int, 1>{}, width, row);
    };
    // Lanes beyond the columns hold zeros, which are no event.
    if (columns > Lanes::COUNT)
        count_all(std::integral_constant<int, ALL>{});
    else
        count_all(std::integral_constant<int, 1>{});
}

template <class Counting>
COMPILED_ONCE void sum_partials(int64_t count, const float *partial, float factor, const float *total, float *after) {
    const Floats factors = Lanes::floats(factor);
    for (int64_t i = 0; i < count; i += Lanes::COUNT)
        Lanes::store(after + i, Lanes::multiply_add(Lanes::load(partial + i), factors, Lanes::load(total + i)));
}

template <class Counting>
COMPILED_ONCE void count_partials(int64_t count, const float *partial, float factor, const float *total,
                                  const float *after, const Tally &tally) {
    const Floats factors = Lanes::floats(factor);
    typename Counting::Counts counters;
    for (int64_t i = 0; i < count; i += Lanes::COUNT) {
        counters.load(tally.at(i));
        Counting::count(Lanes::load(partial + i), factors, Lanes::load(total + i), Lanes::load(after + i), counters);
        counters.store(tally.at(i));
    }
}

// `count` is that of whole rows of a tile, hence of whole vectors.
template <class Counting>
void repeated_join(int64_t count, const float *partial, float *total, float factor, const Rule &, const Tally &tally) {
    constexpr int64_t MOST = 256;
    alignas(64) float after[MOST];
    for (int64_t i = 0; i < count; i += MOST) {
        const int64_t now = count - i < MOST ? count - i : MOST;
        sum_partials<Counting>(now, partial + i, factor, total + i, after);
        {
            const Environment down(Rounding::down);
            count_partials<Counting>(now, partial + i, factor, total + i, after, tally.at(i));
        }
        std::memcpy(total + i, after, static_cast<size_t>(now) * sizeof(float));
    }
}

}  // namespace
