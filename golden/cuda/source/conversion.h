// One value after the other: between the elements of memory and floats, and rounded to a format.
#pragma once

#include "lanes1.h"
#include "product.h"
#include "steps.h"
#include "threads.h"

namespace {

constexpr uint32_t MAGNITUDE = 0x7FFFFFFF;

INLINE bool is_nan(float x) { return x != x; }

INLINE float half_to_float(uint16_t code) {
#if defined(__CUDA_ARCH__)
    float x;
    asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(code));
    return x;
#else
    const uint32_t magnitude = static_cast<uint32_t>(code & 0x7FFF) << 13;
    // Exponent field and fraction stand where float has them, but for the bias.
    const uint32_t value = magnitude >= 0x0F800000 ? magnitude | INFINITY_BITS : bits_of(float_of(magnitude) * 0x1p112f);
    return float_of(value | static_cast<uint32_t>(code & 0x8000) << 16);
#endif
}

INLINE float brain_to_float(uint16_t code) { return float_of(static_cast<uint32_t>(code) << 16); }

INLINE float load_value(Memory memory, const void *data, int64_t index) {
    if (memory == Memory::float32) return static_cast<const float *>(data)[index];
    const uint16_t code = static_cast<const uint16_t *>(data)[index];
    return memory == Memory::float16 ? half_to_float(code) : brain_to_float(code);
}

INLINE Format format_of(const Target &target) { return {target.exponent_bits, target.fraction_bits, target.bias}; }

// Rounds values to nearest, ties to even, into a short format of IEEE 754's specials; NaNs become the canonical one.
class ShortRounder {
public:
    explicit ShortRounder(const Format &format)
        : place_(format),
          scale_(static_cast<float>(power_of_two(format.scale()))),
          limit_(float_of(format.inf() << (FLOAT_FRACTION - format.fraction_bits))) {}

    // Scaled.
    INLINE float operator()(float x) const {
        const Words exact = Lanes::multiply_to_odd(Lanes::floats(x), Lanes::floats(scale_));
        const Floats nearest = Lanes::infinite_from(Lanes::as_floats(place_.round(exact)), Lanes::floats(limit_));
        return is_nan(x) ? float_of(FLOAT_NAN) : nearest;
    }

private:
    LastPlace place_;
    float scale_, limit_;
};

constexpr Format HALF{5, 10, 15}, BRAIN{8, 7, 127};

// The code of a scaled value of a format of 16 bits; `x` is what ShortRounder returns.
INLINE uint16_t short_code(float x, const Format &format) {
    const uint32_t magnitude = (bits_of(x) & MAGNITUDE) >> (FLOAT_FRACTION - format.fraction_bits);
    const uint32_t sign = bits_of(x) >> 31 << (format.width() - 1);
    if (is_nan(x)) return static_cast<uint16_t>(format.nan());
    return static_cast<uint16_t>((magnitude < format.inf() ? magnitude : format.inf()) | sign);
}

INLINE uint16_t element_code(Memory memory, float value) {
    const Format format = memory == Memory::float16 ? HALF : BRAIN;
    return short_code(ShortRounder(format)(value), format);
}

// The code of a value that float16 has.
INLINE uint16_t half_code(float x) {
#if defined(__CUDA_ARCH__)
    uint16_t code;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(code) : "f"(x));
    return code;
#else
    return element_code(Memory::float16, x);
#endif
}

INLINE void store_value(Memory memory, void *data, int64_t index, float value) {
    if (memory == Memory::float32)
        static_cast<float *>(data)[index] = is_nan(value) ? float_of(FLOAT_NAN) : value;
    else
        static_cast<uint16_t *>(data)[index] = element_code(memory, value);
}

}  // namespace
