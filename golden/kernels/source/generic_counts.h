// Any format in every mode, in plain C++, counting what each step does (NUMERICS section 11).
//
// A rounding into a format of the same precision without ends says what is tiny and what overflows.
#pragma once

#include "generic_modes.h"

namespace {

template <Mode MODE>
struct RounderInMode {
    explicit RounderInMode(const Rule &rule) : round(rule) {}
    double operator()(double x, uint32_t word) const { return round(x, word); }
    ModeRounder<MODE> round;
};

template <>
struct RounderInMode<Mode::nearest_even> {
    explicit RounderInMode(const Rule &rule) : round(rule.format) {}
    double operator()(double x, uint32_t) const { return round(x); }
    GenericRounder round;
};

template <Mode MODE>
class CountingStep {
public:
    explicit CountingStep(const Rule &rule)
        : round_(rule),
          round_without_ends_(without_ends(rule)),
          min_normal_(power_of_two(rule.format.emin())),
          max_finite_((2 - power_of_two(-rule.format.fraction_bits)) * power_of_two(rule.format.emax())) {}

    float operator()(float a, float b, float acc, uint32_t word, const Tally &tally, int64_t i) const {
        const double product = static_cast<double>(a) * b, before = acc;
        double exact = sum_to_odd(product, before);
        // A sum of 0 is negative in this mode, but for that of two positive zeros.
        if (MODE == Mode::down && exact == 0)
            exact = double_of(bits_of(exact) | ((bits_of(product) | bits_of(before)) & DOUBLE_SIGN));
        const double after = round_(exact, word);
        if (is_finite(exact) && after != exact) {
            const double magnitude = magnitude_of(round_without_ends_(exact, word));
            tally.inexact[i]++;
            tally.underflow[i] += magnitude < min_normal_;
            tally.overflow[i] += magnitude > max_finite_;
            // Inexact, hence the addend is not 0, and both are finite.
            tally.swamped[i] += after == before;
        }
        const bool infinity_times_zero = product != product && a == a && b == b;
        tally.invalid[i] += infinity_times_zero || (exact != exact && product == product && before == before);
        const float left = static_cast<float>(after);
        const float magnitude = static_cast<float>(magnitude_of(after));
        if (is_finite(after) && magnitude > tally.largest[i]) tally.largest[i] = magnitude;
        return left;
    }

private:
    static bool is_finite(double x) { return (bits_of(x) & DOUBLE_FIELD) != DOUBLE_FIELD; }
    static double magnitude_of(double x) { return double_of(bits_of(x) & ~DOUBLE_SIGN); }
    static Rule without_ends(Rule rule) {
        rule.format = {10, rule.format.fraction_bits, 511};
        return rule;
    }

    RounderInMode<MODE> round_, round_without_ends_;
    double min_normal_, max_finite_;
};

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

const Chain GENERIC_CHAINS[GENERIC_ROWS] = {generic_chain<1>, generic_chain<2>, generic_chain<3>, generic_chain<4>};
const Chain GENERIC_DOTS[1] = {generic_dot};
const Tiles GENERIC_TILES = {GENERIC_ROWS,      GENERIC_COLUMNS, GENERIC_COLUMNS, 4,
                             Rounding::nearest, GENERIC_CHAINS,  GENERIC_DOTS,    generic_join,
                             generic_counted<Mode::nearest_even, ScalarPhilox>()};

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

// All modes on the generic tiles.
template <class Words>
void add_generic_modes(Path &path) {
    path.in(Mode::toward_zero) = generic_in_mode<Mode::toward_zero, Words>();
    path.in(Mode::down) = generic_in_mode<Mode::down, Words>();
    path.in(Mode::up) = generic_in_mode<Mode::up, Words>();
    path.in(Mode::nearest_away) = generic_in_mode<Mode::nearest_away, Words>();
    path.in(Mode::to_odd) = generic_in_mode<Mode::to_odd, Words>();
    path.in(Mode::stochastic) = generic_in_mode<Mode::stochastic, Words>();
}

}  // namespace
