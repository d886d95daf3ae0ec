// How a sum is rounded: direction, mode, format, random bits. Also for devices: nothing here is the host's alone.
#pragma once

#include <cstdint>

#include "format.h"
#include "generic_bits.h"
#include "names.h"

// How a kernel wants its sums rounded. `flushed`: to nearest, and what is then subnormal becomes a zero of its sign.
enum class Rounding { nearest, down, up, zero, flushed };

enum class Mode { CBFLOAT_MODES(CBFLOAT_LISTED) };

// Whether a result beyond the largest finite value becomes that value.
constexpr bool stays_finite(Mode mode, bool negative) {
#define CBFLOAT_STAYS(name, NAME, if_positive, if_negative) || (mode == Mode::name && (negative ? if_negative : if_positive))
    return false CBFLOAT_MODES(CBFLOAT_STAYS);
#undef CBFLOAT_STAYS
}

// What the random bits of the results of a tile, or of a row, depend on (NUMERICS section 10).
struct Place {
    uint32_t key[2], call;
    int random_bits;
    uint32_t step;                // of the first product, or of the promotion or conversion
    uint32_t index;               // of the first result
    uint32_t row_stride, stride;  // from its index to those of the next row and of the next column
};

// How a step is rounded into an accumulator.
struct Rule {
    Format format;  // of the accumulator
    float limit;    // scaled accumulators: the first magnitude beyond the largest finite one
    Mode mode = Mode::nearest_even;
    Place place{};  // where the mode is stochastic
};

namespace {

// Where subnormals are flushed (NUMERICS section 12), sums are rounded as if exponents had no lower end, and then those
// below the smallest normal value become 0. This is the first magnitude that is rounded up to it, to nearest even: it lies
// half an ulp of the binade below away.
inline double first_kept(const Format &format) {
    return (1 - power_of_two(-format.fraction_bits - 2)) * power_of_two(format.emin());
}

}  // namespace
