// Steps of the vector paths that count what they do (NUMERICS section 11), to nearest even, over the class `Lanes`.
//
// Whether a sum is inexact shows in the bits that its rounding cuts off, or in a difference between the sum rounded down
// and up; where both factors and the accumulator are finite, an addend that is 0 makes no sum inexact.
#pragma once

#include <type_traits>

#include "chains.h"
#include "generic_bits.h"
#include "steps.h"

namespace {

using Mask = Lanes::Mask;

static_assert(EVENTS == 5, "a new event needs its lines in Counters, and in half_counts.h");

// The counts of one vector of sums. Without `LIMITED` nothing overflows, and every number is finite.
template <bool LIMITED>
struct Counters {
    static constexpr bool SPECIALS = LIMITED;
    Words inexact, underflow, swamped, overflow, invalid;
    Floats largest;

    void load(const Tally &tally) {
        inexact = Lanes::load_words(tally.inexact);
        underflow = Lanes::load_words(tally.underflow);
        swamped = Lanes::load_words(tally.swamped);
        largest = Lanes::load(tally.largest);
        if constexpr (LIMITED) {
            overflow = Lanes::load_words(tally.overflow);
            invalid = Lanes::load_words(tally.invalid);
        }
    }
    void store(const Tally &tally) const {
        Lanes::store_words(tally.inexact, inexact);
        Lanes::store_words(tally.underflow, underflow);
        Lanes::store_words(tally.swamped, swamped);
        Lanes::store(tally.largest, largest);
        if constexpr (LIMITED) {
            Lanes::store_words(tally.overflow, overflow);
            Lanes::store_words(tally.invalid, invalid);
        }
    }
    void note_swamped(Mask inexact_here, Floats before, Floats after) {
        inexact = Lanes::increased(inexact, inexact_here);
        swamped = Lanes::increased(swamped, Lanes::equal_where(inexact_here, before, after));
    }
    // Infinity times zero, and infinity less infinity. Products of floats may overflow, which makes no NaN.
    void note_invalid(Floats a, Floats b, Floats before, Floats after) {
        const Floats product = Lanes::multiply(a, b);
        const Mask no_product = Lanes::but_not(Lanes::ordered(a, b), Lanes::ordered(product, product));
        const Mask no_sum = Lanes::but_not(Lanes::ordered(product, before), Lanes::ordered(after, after));
        invalid = Lanes::increased(invalid, Lanes::either_mask(no_product, no_sum));
    }
};

// Accumulators in float. Where a sum may be inexact below the smallest normal value, the plain C++ counts.
template <bool LIMITED>
struct SingleCounting : FloatLanes {
    using Counts = Counters<LIMITED>;
    static constexpr int ROWS = Lanes::SINGLE_ROWS;
    explicit SingleCounting(const Rule &) {}
    Floats operator()(Floats a, Floats b, Floats acc, Counters<LIMITED> &counters) const {
        const Floats after = Lanes::multiply_add(a, b, acc);
        count(a, b, acc, after, counters);
        return after;
    }
    static void count(Floats a, Floats b, Floats acc, Floats after, Counters<LIMITED> &counters) {
        const Mask inexact = Lanes::is_inexact(a, b, acc);
        counters.note_swamped(inexact, acc, after);
        if constexpr (LIMITED) {
            const Mask infinite = Lanes::at_least(after, Lanes::as_floats(Lanes::words(INFINITY_BITS)));
            counters.overflow = Lanes::increased(counters.overflow, Lanes::both_masks(inexact, infinite));
            counters.note_invalid(a, b, acc, after);
            const Mask finite = Lanes::but_not(Lanes::ordered(after, after), infinite);
            counters.largest = Lanes::larger_magnitude(counters.largest, Lanes::only(finite, after));
        } else {
            counters.largest = Lanes::larger_magnitude(counters.largest, after);
        }
    }
};

// Scaled accumulators of short formats, with two bits at least to spare in a float. Without `UNDERFLOWS` sums below the
// smallest normal value are exact.
template <bool LIMITED, bool UNDERFLOWS>
struct ScaledCounting : ScaledStep {
    using Counts = Counters<LIMITED>;
    explicit ScaledCounting(const Rule &rule)
        : ScaledStep(rule),
          below(Lanes::words((1u << (FLOAT_FRACTION - rule.format.fraction_bits)) - 1)),
          // Half of a last place in a format without ends below 2^-126: magnitudes from there on are rounded to that.
          not_tiny(Lanes::words(0x00800000 - (1u << (FLOAT_FRACTION - 2 - rule.format.fraction_bits)))),
          magnitude(Lanes::words(~SIGN)),
          limit(Lanes::floats(rule.limit)) {}
    Floats operator()(Floats a, Floats b, Floats acc, Counters<LIMITED> &counters) const {
        const Words x = Lanes::multiply_add_to_odd(a, b, acc);
        Floats after = Lanes::as_floats(place.round(x));
        Mask inexact = Lanes::has(x, below);
        if constexpr (UNDERFLOWS)
            counters.underflow =
                Lanes::increased(counters.underflow, Lanes::less_where(inexact, Lanes::both(x, magnitude), not_tiny));
        if constexpr (LIMITED) {
            const Floats sum = Lanes::as_floats(x), infinity = Lanes::as_floats(Lanes::words(INFINITY_BITS));
            const Mask beyond = Lanes::at_least(after, limit);
            const Mask overflow = Lanes::but_not(beyond, Lanes::at_least(sum, infinity));
            inexact = Lanes::either_mask(inexact, overflow);
            counters.overflow = Lanes::increased(counters.overflow, overflow);
            after = Lanes::infinite_from(after, limit);
            counters.note_invalid(a, b, acc, after);
            const Mask finite = Lanes::but_not(Lanes::ordered(after, after), beyond);
            counters.largest = Lanes::larger_magnitude(counters.largest, Lanes::only(finite, after));
        } else {
            counters.largest = Lanes::larger_magnitude(counters.largest, after);
        }
        counters.note_swamped(inexact, acc, after);
        return after;
    }
    Words below, not_tiny, magnitude;
    Floats limit;
};

// `ROWS` rows of `USED` vectors of columns. The factors of two steps stand `PITCH` apart. The vectors of a row have counts
// of their own, or with `SHARED` one in common.
template <class Counting, int PITCH, int COLUMNS, int ROWS, int USED, bool SHARED, bool DOT>
void count_rows(const Rule &rule, int64_t steps, const float *x, const float *y, float *sums, const Tally &tally) {
    constexpr int COUNTERS = SHARED ? 1 : USED;
    const Counting step(rule);
    Floats sum[ROWS][USED];
    typename Counting::Counts counters[ROWS][COUNTERS];
#pragma GCC unroll 8
    for (int row = 0; row < ROWS; row++) {
#pragma GCC unroll 8
        for (int v = 0; v < USED; v++) sum[row][v] = Lanes::load(sums + row * COLUMNS + v * Lanes::COUNT);
#pragma GCC unroll 8
        for (int v = 0; v < COUNTERS; v++) counters[row][v].load(tally.at(row * COLUMNS + v * Lanes::COUNT));
    }
    for (int64_t k = 0; k < steps; k++, x += PITCH, y += COLUMNS)
#pragma GCC unroll 8
        for (int row = 0; row < ROWS; row++) {
            const Floats factor = Lanes::floats(DOT ? 0 : x[row]);
#pragma GCC unroll 8
            for (int v = 0; v < USED; v++)
                sum[row][v] = step(DOT ? Lanes::load(x + v * Lanes::COUNT) : factor, Lanes::load(y + v * Lanes::COUNT),
                                   sum[row][v], counters[row][SHARED ? 0 : v]);
        }
#pragma GCC unroll 8
    for (int row = 0; row < ROWS; row++) {
#pragma GCC unroll 8
        for (int v = 0; v < USED; v++) Lanes::store(sums + row * COLUMNS + v * Lanes::COUNT, sum[row][v]);
#pragma GCC unroll 8
        for (int v = 0; v < COUNTERS; v++) counters[row][v].store(tally.at(row * COLUMNS + v * Lanes::COUNT));
    }
}

// The pieces of a tile that are counted at once: as many sums as hide the time that each waits for itself, as far as
// there are registers for their counts.
template <class Counting>
void count_chain(int rows, int columns, bool dot, int64_t steps, const void *a, const void *b, void *acc,
                 const Rule &rule, const Tally &tally) {
    constexpr int PITCH = Counting::ROWS, COLUMNS = columns_of<Counting>, ALL = Lanes::VECTORS;
    const float *const x = static_cast<const float *>(a), *const y = static_cast<const float *>(b);
    float *const sums = static_cast<float *>(acc);
    const auto count = [&](auto height, auto width, auto shared, int row, int column) {
        constexpr int ROWS = decltype(height)::value, USED = decltype(width)::value;
        const int at = row * COLUMNS + column;
        count_rows<Counting, PITCH, COLUMNS, ROWS, USED, decltype(shared)::value, false>(
            rule, steps, x + row, y + column, sums + at, tally.at(at));
    };
    constexpr std::integral_constant<int, 1> one;
    constexpr std::integral_constant<int, 2> two;
    constexpr std::integral_constant<int, Lanes::COUNTED_SUMS> most;
    constexpr std::integral_constant<int, ALL> all;
    if (dot) {
        for (int column = 0; column < columns; column += Lanes::COUNT)
            count_rows<Counting, COLUMNS, COLUMNS, 1, 1, false, true>(rule, steps, x + column, y + column,
                                                                      sums + column, tally.at(column));
        return;
    }
    int row = 0;
    // Lanes beyond the columns hold zeros, which are no event.
    const bool is_full = columns > COLUMNS - Lanes::COUNT;
    if constexpr (!Counting::Counts::SPECIALS)
        if (tally.by_row && is_full)
            for (; row + 2 <= rows; row += 2) count(two, all, std::true_type{}, row, 0);
    for (; row + most <= rows; row += most)
        for (int column = 0; column < columns; column += Lanes::COUNT) count(most, one, std::false_type{}, row, column);
    for (; row < rows; row++) {
        if (is_full)
            count(one, all, std::false_type{}, row, 0);
        else
            for (int column = 0; column < columns; column += Lanes::COUNT)
                count(one, one, std::false_type{}, row, column);
    }
}

// `count` is that of whole rows of a tile. Lanes beyond the columns hold zeros and NaNs, of which no promotion is an event.
template <class Counting>
void count_join(int64_t count, const float *partial, float *total, float factor, const Rule &rule, const Tally &tally) {
    const Counting step(rule);
    const Floats factors = Lanes::floats(factor);
    const int shared = tally.by_row ? columns_of<Counting> : Lanes::COUNT;
    typename Counting::Counts counters;
    for (int64_t first = 0; first < count; first += shared) {
        counters.load(tally.at(first));
        for (int64_t i = first; i < first + shared; i += Lanes::COUNT)
            Lanes::store(total + i, step(Lanes::load(partial + i), factors, Lanes::load(total + i), counters));
        counters.store(tally.at(first));
    }
}

Tiles counting(const Tiles &tiles, const Counted *counted) {
    Tiles counting = tiles;
    counting.counted = counted;
    return counting;
}

}  // namespace
