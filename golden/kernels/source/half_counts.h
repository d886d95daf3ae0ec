// Steps of native float16 that count what they do (NUMERICS section 11), to nearest even, over the classes `Halves` and
// `Lanes`.
//
// A block of steps is counted as if it left no infinity, no NaN and nothing inexact as small as the smallest normal value,
// which nearly all do. A vector of sums that did is counted again, in floats.
#pragma once

#include "vector_counts.h"

namespace {

using Codes = Halves::Codes;

constexpr int HALF_BLOCK = 32;  // steps; each counter of a block has 16 bits
constexpr int HALF_PARTS = Halves::COUNT / Lanes::COUNT;
constexpr uint16_t HALF_SMALLEST_NORMAL = 0x0400, HALF_INFINITY = 0x7C00;

struct HalfBlock {
    Codes inexact, swamped, largest;
    Codes least;  // magnitude that an inexact step left

    void start() {
        inexact = swamped = largest = Halves::codes(0);
        least = Halves::codes(0xFFFF);
    }
    void note(Halves::Vector a, Halves::Vector b, Halves::Vector before, Halves::Vector after) {
        const Halves::Mask where = Halves::is_inexact(a, b, before);
        const Codes magnitude = Halves::magnitudes(after);
        inexact = Halves::increased(inexact, where);
        swamped = Halves::increased(swamped, Halves::same_where(where, before, after));
        largest = Halves::larger(largest, magnitude);
        least = Halves::smaller_where(where, least, magnitude);
    }
    bool is_ordinary() const {
        return Halves::all_below(largest, HALF_INFINITY) && Halves::all_above(least, HALF_SMALLEST_NORMAL);
    }
    // The counts of another vector of the same row.
    void join(const HalfBlock &other) {
        inexact = Halves::add(inexact, other.inexact);
        swamped = Halves::add(swamped, other.swamped);
        largest = Halves::larger(largest, other.largest);
    }
    void add_to(const Tally &tally) const {
        if (tally.by_row) {
            add(Halves::paired(inexact), tally.inexact);
            add(Halves::paired(swamped), tally.swamped);
            enlarge(Halves::widened(Halves::larger_half(largest)), tally.largest);
            return;
        }
        for (int part = 0; part < HALF_PARTS; part++) {
            const int at = part * Lanes::COUNT;
            add(Halves::words(inexact, part), tally.inexact + at);
            add(Halves::words(swamped, part), tally.swamped + at);
            enlarge(Halves::widened(Halves::half(largest, part)), tally.largest + at);
        }
    }

private:
    static void add(Words counts, uint32_t *to) { Lanes::store_words(to, Lanes::add(Lanes::load_words(to), counts)); }
    static void enlarge(Floats magnitude, float *to) {
        Lanes::store(to, Lanes::larger_magnitude(Lanes::load(to), magnitude));
    }
};

// Count the steps of one vector of sums in floats, one part after the other.
template <bool DOT>
COMPILED_ONCE void count_halves_again(const Rule &rule, int64_t steps, const uint16_t *x, int pitch, const uint16_t *y,
                                      int columns, uint16_t *sums, const Tally &tally) {
    const ScaledCounting<true, true> step(rule);
    const Floats down = Lanes::floats(static_cast<float>(power_of_two(rule.format.scale())));
    const Floats up = Lanes::floats(static_cast<float>(power_of_two(-rule.format.scale())));
    for (int part = 0; part < HALF_PARTS; part++) {
        const int lane = part * Lanes::COUNT;
        ScaledCounting<true, true>::Counts counters;
        counters.load(tally.at(lane));
        counters.largest = Lanes::multiply(counters.largest, down);
        Floats sum = Lanes::multiply(Halves::widened(Halves::load_half(sums + lane)), down);
        for (int64_t k = 0; k < steps; k++) {
            const Floats factor = DOT ? Halves::widened(Halves::load_half(x + k * pitch + lane)) : Halves::widened(Halves::all_halves(x[k * pitch]));
            sum = step(factor, Lanes::multiply(Halves::widened(Halves::load_half(y + k * columns + lane)), down), sum, counters);
        }
        counters.largest = Lanes::multiply(counters.largest, up);
        counters.store(tally.at(lane));
        Halves::narrow(sums + lane, Lanes::multiply(sum, up));
    }
}

// One row of `USED` vectors. The factors of two steps stand `PITCH` apart.
template <int PITCH, int COLUMNS, int USED, bool DOT>
void count_halves(const Rule &rule, int64_t steps, const uint16_t *x, const uint16_t *y, uint16_t *sums,
                  const Tally &tally) {
    Halves::Vector sum[USED];
    HalfBlock blocks[USED];
#pragma GCC unroll 8
    for (int v = 0; v < USED; v++) {
        sum[v] = Halves::load(sums + v * Halves::COUNT);
        blocks[v].start();
    }
    for (int64_t k = 0; k < steps; k++) {
        const Halves::Vector factor = Halves::all(DOT ? 0 : x[k * PITCH]);
#pragma GCC unroll 8
        for (int v = 0; v < USED; v++) {
            const Halves::Vector left = DOT ? Halves::load(x + k * PITCH + v * Halves::COUNT) : factor;
            const Halves::Vector right = Halves::load(y + k * COLUMNS + v * Halves::COUNT);
            const Halves::Vector after = Halves::multiply_add(left, right, sum[v]);
            blocks[v].note(left, right, sum[v], after);
            sum[v] = after;
        }
    }
    bool are_ordinary = true;
#pragma GCC unroll 8
    for (int v = 0; v < USED; v++) are_ordinary &= blocks[v].is_ordinary();
    if (are_ordinary && tally.by_row)
#pragma GCC unroll 8
        for (int v = 1; v < USED; v++) blocks[0].join(blocks[v]);
#pragma GCC unroll 8
    for (int v = 0; v < USED; v++) {
        const int at = v * Halves::COUNT;
        if (!are_ordinary && !blocks[v].is_ordinary()) {
            count_halves_again<DOT>(rule, steps, DOT ? x + at : x, PITCH, y + at, COLUMNS, sums + at, tally.at(at));
            continue;
        }
        if (v == 0 || !are_ordinary || !tally.by_row) blocks[v].add_to(tally.at(at));
        Halves::store(sums + at, sum[v]);
    }
}

template <class Step>
void count_half_chain(int rows, int columns, bool dot, int64_t steps, const void *a, const void *b, void *acc,
                      const Rule &rule, const Tally &tally) {
    constexpr int COLUMNS = columns_of<Step>, PAIR = 2 * Halves::COUNT;
    const uint16_t *x = static_cast<const uint16_t *>(a), *y = static_cast<const uint16_t *>(b);
    uint16_t *const sums = static_cast<uint16_t *>(acc);
    while (steps > 0) {
        const int64_t now = steps < HALF_BLOCK ? steps : HALF_BLOCK;
        for (int row = 0; row < rows; row++)
            for (int column = 0; column < columns; column += PAIR) {
                const int at = row * COLUMNS + column;
                const auto count = [&](auto width) {
                    constexpr int USED = decltype(width)::value;
                    if (dot)
                        count_halves<COLUMNS, COLUMNS, USED, true>(rule, now, x + column, y + column, sums + at,
                                                                   tally.at(at));
                    else
                        count_halves<Step::ROWS, COLUMNS, USED, false>(rule, now, x + row, y + column, sums + at,
                                                                       tally.at(at));
                };
                if (columns - column > Halves::COUNT)
                    count(std::integral_constant<int, 2>{});
                else
                    count(std::integral_constant<int, 1>{});
            }
        steps -= now;
        x += now * (dot ? COLUMNS : Step::ROWS);
        y += now * COLUMNS;
    }
}

}  // namespace
