// Steps of any format in every mode that count what they do (NUMERICS section 11), in plain C++; also for devices.
//
// A rounding into a format of the same precision without ends says what is tiny and what overflows.
#pragma once

#include "generic_mode_steps.h"

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

static_assert(EVENTS == 5, "a new event needs its line in CountingStep");

template <Mode MODE>
class CountingStep {
public:
    explicit CountingStep(const Rule &rule)
        : round_(rule),
          round_without_ends_(without_ends(rule)),
          min_normal_(power_of_two(rule.format.emin())),
          max_finite_((2 - power_of_two(-rule.format.fraction_bits)) * power_of_two(rule.format.emax())) {}

    // `Events` has an array of numbers for each event, and one of the largest magnitudes; `i` is the place of the sum.
    template <class Events>
    float operator()(float a, float b, float acc, uint32_t word, Events &tally, int64_t i) const {
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

}  // namespace
