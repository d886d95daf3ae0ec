// Any format, in plain C++: every step is an exact sum in double, rounded to odd, then once into the format.
//
// Included by each path after its target is set; everything here is local to the including file.
#pragma once

#include <cfloat>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "generic_bits.h"
#include "path.h"

// Sums must be rounded to the type of their operands. Elsewhere (x87) the library is not built, and NumPy serves.
static_assert(FLT_EVAL_METHOD == 0, "float and double expressions must be evaluated in their own precision");

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

constexpr int GENERIC_ROWS = 4, GENERIC_COLUMNS = 16;

template <int ROWS>
void generic_chain(int64_t steps, const void *a, const void *b, void *acc, const Rule &rule) {
    const GenericStep step(rule);
    const float *x = static_cast<const float *>(a), *y = static_cast<const float *>(b);
    float *sums = static_cast<float *>(acc);
    for (int64_t k = 0; k < steps; k++, x += GENERIC_ROWS, y += GENERIC_COLUMNS)
        for (int row = 0; row < ROWS; row++)
            for (int column = 0; column < GENERIC_COLUMNS; column++) {
                float &sum = sums[row * GENERIC_COLUMNS + column];
                sum = step(x[row], y[column], sum);
            }
}

void generic_dot(int64_t steps, const void *a, const void *b, void *acc, const Rule &rule) {
    const GenericStep step(rule);
    const float *x = static_cast<const float *>(a), *y = static_cast<const float *>(b);
    float *sums = static_cast<float *>(acc);
    for (int64_t k = 0; k < steps; k++, x += GENERIC_COLUMNS, y += GENERIC_COLUMNS)
        for (int column = 0; column < GENERIC_COLUMNS; column++)
            sums[column] = step(x[column], y[column], sums[column]);
}

void generic_join(int64_t count, const float *partial, float *total, float factor, const Rule &rule) {
    const GenericStep step(rule);
    for (int64_t i = 0; i < count; i++) total[i] = step(partial[i], factor, total[i]);
}

float generic_smallest(int64_t count, const float *values) {
    uint32_t smallest = 0x7F800000 - 1;  // less 1, so that a 0 is the largest
    for (int64_t i = 0; i < count; i++) {
        const uint32_t magnitude = (bits_of(values[i]) & 0x7FFFFFFF) - 1;
        smallest = magnitude < smallest ? magnitude : smallest;
    }
    return float_of(smallest + 1);
}

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

inline void store_code(void *codes, int64_t i, uint32_t code, const Format &format) {
    if (format.code_bytes() == 2)
        static_cast<uint16_t *>(codes)[i] = static_cast<uint16_t>(code);
    else
        static_cast<uint32_t *>(codes)[i] = code;
}

inline float canonical(double value) { return value != value ? float_of(FLOAT_NAN) : static_cast<float>(value); }

template <class Real>
void generic_encode(const Format &format, int64_t count, const Real *values, void *codes) {
    const GenericRounder round(format);
    for (int64_t i = 0; i < count; i++) store_code(codes, i, code_of(round(values[i]), format), format);
}

void generic_quantize(const Format &format, int64_t count, const float *values, float *rounded, int exponent) {
    const GenericRounder round(format);
    for (int64_t i = 0; i < count; i++) rounded[i] = canonical(round(values[i]) * power_of_two(exponent));
}

void generic_quantize_double(const Format &format, int64_t count, const double *values, float *rounded) {
    const GenericRounder round(format);
    for (int64_t i = 0; i < count; i++) rounded[i] = canonical(round(values[i]));
}

void generic_decode(const Format &format, int64_t count, const void *codes, float *values, int exponent) {
    for (int64_t i = 0; i < count; i++) {
        const uint32_t code = format.code_bytes() == 2 ? static_cast<const uint16_t *>(codes)[i]
                                                       : static_cast<const uint32_t *>(codes)[i];
        values[i] = canonical(value_of(code, format) * power_of_two(exponent));
    }
}

const Arrays GENERIC_ARRAYS = {Rounding::nearest, generic_encode<float>,   generic_encode<double>,
                               generic_quantize,  generic_quantize_double, generic_decode};

float generic_largest(int64_t count, const float *values) {
    uint32_t largest = 0;
    for (int64_t i = 0; i < count; i++) {
        const uint32_t magnitude = bits_of(values[i]) & 0x7FFFFFFF;
        largest = magnitude > largest ? magnitude : largest;
    }
    return float_of(largest > 0x7F800000 ? 0x7F800000 : largest);
}

}  // namespace
