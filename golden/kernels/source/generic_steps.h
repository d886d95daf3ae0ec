// Any format, in plain C++: every step is an exact sum in double, rounded to odd, then once into the format.
//
// For the host and for devices; everything here is local to the including file.
#pragma once

#include <cstdint>

#include "generic_bits.h"
#include "rule.h"

namespace {

constexpr uint64_t DOUBLE_SIGN = 1ull << 63;
constexpr uint64_t DOUBLE_FIELD = 0x7FFull << 52;
constexpr uint32_t FLOAT_NAN = 0x7FC00000;

// Adding and subtracting 2^52 ulps of the lowest kept digit makes the host round there, subnormals included.
class GenericRounder {
public:
    explicit GenericRounder(const Format &format)
        : lowest_(static_cast<uint64_t>(1023 + format.emin()) << 52),
          shift_(static_cast<uint64_t>(52 - format.fraction_bits) << 52),
          limit_((2 - power_of_two(-format.fraction_bits)) * power_of_two(format.emax())) {}

    // `x` is exact or rounded to odd; magnitudes above 2^300 need no care, they are infinity in every format.
    double operator()(double x) const {
        const uint64_t sign = bits_of(x) & DOUBLE_SIGN;
        const double magnitude = double_of(bits_of(x) ^ sign);
        uint64_t field = bits_of(x) & DOUBLE_FIELD;
        field = field < lowest_ ? lowest_ : field;
        field = field > HIGHEST ? HIGHEST : field;
        const double shifter = double_of(field + shift_);
        double rounded = magnitude + shifter;
        rounded = rounded - shifter;
        rounded = rounded > limit_ ? double_of(DOUBLE_FIELD) : rounded;
        return double_of(bits_of(rounded) | sign);
    }

private:
    static constexpr uint64_t HIGHEST = static_cast<uint64_t>(1023 + 300) << 52;
    uint64_t lowest_, shift_;
    double limit_;
};

// The neighbour of an inexact sum whose last bit is 1: it still tells on which side of a midpoint the sum lies.
inline double sum_to_odd(double x, double y) {
    const double total = x + y;
    const double back = total - x;
    const double error = (x - (total - back)) + (y - back);
    const uint64_t bits = bits_of(total);
    const bool finite = (bits & DOUBLE_FIELD) != DOUBLE_FIELD;
    const bool move = finite && error != 0 && (bits & 1) == 0;
    const bool towards_zero = ((bits_of(error) ^ bits) & DOUBLE_SIGN) != 0;
    return double_of(bits + (move ? (towards_zero ? ~0ull : 1ull) : 0ull));
}

class GenericStep {
public:
    explicit GenericStep(const Rule &rule) : round_(rule.format) {}
    float operator()(float a, float b, float acc) const {
        return static_cast<float>(round_(sum_to_odd(static_cast<double>(a) * b, acc)));
    }

private:
    GenericRounder round_;
};

class GenericFlushedStep {
public:
    explicit GenericFlushedStep(const Rule &rule) : round_(rule.format), first_kept_(first_kept(rule.format)) {}
    float operator()(float a, float b, float acc) const {
        const double exact = sum_to_odd(static_cast<double>(a) * b, acc);
        const uint64_t sign = bits_of(exact) & DOUBLE_SIGN;
        const bool is_flushed = double_of(bits_of(exact) ^ sign) < first_kept_;
        return static_cast<float>(is_flushed ? double_of(sign) : round_(exact));
    }

private:
    GenericRounder round_;
    double first_kept_;
};

// The code of a value that the format holds.
inline uint32_t code_of(double rounded, const Format &format) {
    if (rounded != rounded) return format.nan();
    const uint64_t bits = bits_of(rounded);
    const uint32_t sign = static_cast<uint32_t>(bits >> 63) << (format.width() - 1);
    const double magnitude = double_of(bits & ~DOUBLE_SIGN);
    if ((bits & DOUBLE_FIELD) == DOUBLE_FIELD) return sign | format.inf();
    if (magnitude < power_of_two(format.emin()))
        return sign | static_cast<uint32_t>(magnitude * power_of_two(-format.lowest_digit()));
    const uint64_t moved = (bits & ~DOUBLE_SIGN) >> (52 - format.fraction_bits);
    return sign | static_cast<uint32_t>(moved - (static_cast<uint64_t>(1023 - format.bias) << format.fraction_bits));
}

inline double value_of(uint32_t code, const Format &format) {
    const uint32_t magnitude = code & ((1u << (format.width() - 1)) - 1);
    const uint32_t field = magnitude >> format.fraction_bits;
    const uint32_t fraction = magnitude & ((1u << format.fraction_bits) - 1);
    if (magnitude > format.inf()) return double_of(0x7FFull << 52 | 1ull << 51);
    const double significand = fraction + (field ? power_of_two(format.fraction_bits) : 0);
    const double finite = significand * power_of_two((field ? static_cast<int>(field) - 1 : 0) + format.lowest_digit());
    const double value = magnitude == format.inf() ? double_of(DOUBLE_FIELD) : finite;
    return code >> (format.width() - 1) & 1 ? -value : value;
}

inline float canonical(double value) { return value != value ? float_of(FLOAT_NAN) : static_cast<float>(value); }

}  // namespace
