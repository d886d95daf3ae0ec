// A format's constants, all derived from exponent bits, fraction bits and bias (NUMERICS section 1).
#pragma once

#include <cstdint>

// Short formats travel *scaled*: multiplied by 2^scale, so that their smallest normal value becomes float's, 2^-126.
// A finite scaled value is then the code itself, moved to the top of a float: exponent field and fraction coincide,
// subnormals included, and rounding to the format is rounding the bits of a float at one fixed place.
struct Format {
    int exponent_bits, fraction_bits, bias;

    static Format from_number(int64_t number) {
        return {static_cast<int>(number & 255), static_cast<int>(number >> 8 & 255), static_cast<int>(number >> 16)};
    }

    bool operator==(const Format &other) const {
        return exponent_bits == other.exponent_bits && fraction_bits == other.fraction_bits && bias == other.bias;
    }
    bool operator!=(const Format &other) const { return !(*this == other); }

    int width() const { return 1 + exponent_bits + fraction_bits; }
    int code_bytes() const { return width() <= 16 ? 2 : 4; }
    int emin() const { return 1 - bias; }
    int emax() const { return (1 << exponent_bits) - 2 - bias; }
    int lowest_digit() const { return emin() - fraction_bits; }
    uint32_t inf() const { return ((1u << exponent_bits) - 1) << fraction_bits; }
    uint32_t nan() const { return inf() | 1u << (fraction_bits - 1); }

    bool is_float() const { return exponent_bits == 8 && fraction_bits == 23 && bias == 127; }
    int scale() const { return -126 - emin(); }

    // Whether the scaled method serves: a float rounded to odd must keep two bits more than the format.
    bool is_short() const { return fraction_bits <= 21 && scale() >= -126; }
};

inline constexpr int FLOAT_FRACTION = 23;
