// Steps of any format in the modes other than nearest even, in plain C++, as generic_steps.h has it for that one.
#pragma once

#include <cfloat>

#include "generic_steps.h"

namespace {

// Rounds a sum that is rounded to odd: the lower neighbour, and whether it stays. A sum of float32 values and of their
// products is far below 2^300, and infinity and NaN stay what they are whatever comes of `ulp` and `shifter`.
template <Mode MODE>
class ModeRounder {
public:
    explicit ModeRounder(const Rule &rule)
        : lowest_(static_cast<uint64_t>(1023 + rule.format.emin()) << 52),
          fraction_(static_cast<uint64_t>(rule.format.fraction_bits) << 52),
          limit_((2 - power_of_two(-rule.format.fraction_bits)) * power_of_two(rule.format.emax())),
          random_shift_(32 - rule.place.random_bits),
          random_unit_(power_of_two(-rule.place.random_bits)) {}

    double operator()(double x, uint32_t word) const {
        const uint64_t sign = bits_of(x) & DOUBLE_SIGN;
        const double magnitude = double_of(bits_of(x) ^ sign);
        uint64_t field = bits_of(x) & DOUBLE_FIELD;
        field = field < lowest_ ? lowest_ : field;
        const double ulp = double_of(field - fraction_);
        const double shifter = double_of(field - fraction_ + (52ull << 52));
        const double moved = magnitude + shifter;
        double lower = moved - shifter;
        lower = lower > magnitude ? lower - ulp : lower;
        const double rounded = goes_up(magnitude, lower, ulp, shifter, sign, word) ? lower + ulp : lower;
        const bool stops = stays_finite(MODE, sign != 0);
        const double beyond = stops && magnitude <= DBL_MAX ? limit_ : double_of(DOUBLE_FIELD);
        return double_of(bits_of(rounded > limit_ ? beyond : rounded) | sign);
    }

private:
    bool goes_up(double magnitude, double lower, double ulp, double shifter, uint64_t sign, uint32_t word) const {
        if constexpr (MODE == Mode::down) return magnitude > lower && sign != 0;
        if constexpr (MODE == Mode::up) return magnitude > lower && sign == 0;
        if constexpr (MODE == Mode::nearest_away) return magnitude - lower >= ulp * 0.5;
        if constexpr (MODE == Mode::to_odd) return magnitude > lower && (bits_of(lower + shifter) & 1) == 0;
        // floor(rest * 2^R) + r >= 2^R, where r is whole.
        if constexpr (MODE == Mode::stochastic)
            return magnitude - lower >= ulp * (1 - static_cast<double>(word >> random_shift_) * random_unit_);
        static_assert(MODE == Mode::toward_zero || MODE == Mode::down || MODE == Mode::up || MODE == Mode::nearest_away ||
                          MODE == Mode::to_odd || MODE == Mode::stochastic,
                      "a mode needs its rule above");
        return false;
    }

    uint64_t lowest_, fraction_;
    double limit_;
    int random_shift_;
    double random_unit_;
};

template <Mode MODE>
class ModeStep {
public:
    explicit ModeStep(const Rule &rule) : round_(rule) {}
    float operator()(float a, float b, float acc, uint32_t word) const {
        const double product = static_cast<double>(a) * b, sum = acc;
        double exact = sum_to_odd(product, sum);
        // A sum of 0 is negative in this mode, but for that of two positive zeros.
        if (MODE == Mode::down && exact == 0) exact = double_of(bits_of(exact) | ((bits_of(product) | bits_of(sum)) & DOUBLE_SIGN));
        return static_cast<float>(round_(exact, word));
    }

private:
    ModeRounder<MODE> round_;
};

}  // namespace
