// The loops of any format, in plain C++, around the steps of generic_steps.h.
//
// Included by each path after its target is set; everything here is local to the including file.
#pragma once

#include <cfloat>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "generic_steps.h"
#include "path.h"

// Sums must be rounded to the type of their operands. Elsewhere (x87) the library is not built, and NumPy serves.
static_assert(FLT_EVAL_METHOD == 0, "float and double expressions must be evaluated in their own precision");

namespace {

constexpr int GENERIC_ROWS = 4, GENERIC_COLUMNS = 16;

template <class Step, int ROWS>
void generic_chain(int64_t steps, const void *a, const void *b, void *acc, const Rule &rule) {
    const Step step(rule);
    const float *x = static_cast<const float *>(a), *y = static_cast<const float *>(b);
    float *sums = static_cast<float *>(acc);
    for (int64_t k = 0; k < steps; k++, x += GENERIC_ROWS, y += GENERIC_COLUMNS)
        for (int row = 0; row < ROWS; row++)
            for (int column = 0; column < GENERIC_COLUMNS; column++) {
                float &sum = sums[row * GENERIC_COLUMNS + column];
                sum = step(x[row], y[column], sum);
            }
}

template <class Step>
void generic_dot(int64_t steps, const void *a, const void *b, void *acc, const Rule &rule) {
    const Step step(rule);
    const float *x = static_cast<const float *>(a), *y = static_cast<const float *>(b);
    float *sums = static_cast<float *>(acc);
    for (int64_t k = 0; k < steps; k++, x += GENERIC_COLUMNS, y += GENERIC_COLUMNS)
        for (int column = 0; column < GENERIC_COLUMNS; column++)
            sums[column] = step(x[column], y[column], sums[column]);
}

template <class Step>
void generic_join(int64_t count, const float *partial, float *total, float factor, const Rule &rule) {
    const Step step(rule);
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

void generic_slide(int64_t steps, const float *factors, const float *const *rows, float start, int64_t count,
                   float *sums) {
    const GenericStep step(Rule{Format{8, 23, 127}, 0});
    for (int64_t i = 0; i < count; i++) {
        float sum = start;
        for (int64_t k = 0; k < steps; k++) sum = step(factors[k], rows[k][i], sum);
        sums[i] = sum;
    }
}

void generic_correlate(int64_t steps, const float *factors, int64_t elements, const float *const *rows, int64_t pitch,
                       float *sums) {
    const GenericStep step(Rule{Format{8, 23, 127}, 0});
    for (int64_t e = 0; e < elements; e++)
        for (int64_t k = 0; k < steps; k++)
            for (int64_t i = 0; i < LANES; i++)
                sums[e * LANES + i] = step(factors[k * LANES + i], rows[e][k * pitch + i], sums[e * LANES + i]);
}

inline void store_code(void *codes, int64_t i, uint32_t code, const Format &format) {
    if (format.code_bytes() == 2)
        static_cast<uint16_t *>(codes)[i] = static_cast<uint16_t>(code);
    else
        static_cast<uint32_t *>(codes)[i] = code;
}

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
