// What a device's fused instructions return, computed on a host that rounds to nearest: from the exact sum, by comparison.
#pragma once

#include <cstdint>

#include "generic_steps.h"

namespace {
namespace exact {

// As a device makes it: all bits set below the sign.
inline float nan() { return float_of(0x7FFFFFFF); }

// A double in a direction, where `x` is exact or rounded to odd: its 53 bits tell on which side of every float it lies.
inline float to_float(double x, Rounding direction) {
    if (x != x) return nan();
    const float nearest = static_cast<float>(x);
    const double magnitude = x < 0 ? -x : x, found = nearest < 0 ? -double{nearest} : double{nearest};
    const bool negative = bits_of(x) >> 63 != 0;
    const bool away = direction == (negative ? Rounding::down : Rounding::up);
    const bool toward = direction == Rounding::zero || direction == (negative ? Rounding::up : Rounding::down);
    // Bits of the same sign are in the order of magnitudes, infinity included.
    if (away && found < magnitude) return float_of(bits_of(nearest) + 1);
    if (toward && found > magnitude) return float_of(bits_of(nearest) - 1);
    return nearest;
}

// product + c, where the product of two floats is exact in double.
inline float float_sum(double product, float c, Rounding direction) {
    double sum = sum_to_odd(product, double{c});
    // A sum of 0 is negative in this direction, but for that of two positive zeros.
    if (direction == Rounding::down && sum == 0 && (bits_of(product) | bits_of(double{c})) >> 63 != 0) sum = -0.0;
    return to_float(sum, direction);
}

// a * b + c toward zero, where c and one of the factors are floats times 2^-896, and the other is a float.
inline double wide_sum_toward_zero(double a, double b, double c) {
    const double half = power_of_two(448), whole = half * half;
    const double product = (a * half) * (b * half), start = c * whole;  // exact
    const double sum = product + start;
    if (sum != sum) return double_of(~0ull >> 1);
    if ((bits_of(sum) & DOUBLE_FIELD) == DOUBLE_FIELD) return sum;
    // The error of the sum: where it points toward zero, the sum is one place too large.
    const double back = sum - product;
    const double error = (product - (sum - back)) + (start - back);
    const bool too_large = error != 0 && (bits_of(error) ^ bits_of(sum)) >> 63 != 0;
    const double cut = too_large ? double_of(bits_of(sum) - 1) : sum;
    // Times 2^-896: below the smallest normal value it rounds, to nearest on this host.
    const double scaled = cut / whole, again = scaled * whole;
    const bool is_beyond = cut < 0 ? again < cut : again > cut;
    return is_beyond ? double_of(bits_of(scaled) - 1) : scaled;
}

}  // namespace exact
}  // namespace
