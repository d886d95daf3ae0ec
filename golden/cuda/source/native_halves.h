// Two float16 or bfloat16 values in one register, with a device's own fused step: one rounding, no subnormal flushed.
//
// A device's NaN is 0x7FFF; whoever takes a sum out of the register makes it the canonical one.
#pragma once

#include <cstdint>

#include "generic_steps.h"

namespace {

struct HalfPairs {
    using Element = uint16_t;
    using Vector = uint32_t;  // the first of two in the lower half
    static constexpr int COUNT = 2, VECTORS = 1, ROWS = 1;

    static Vector load(const uint16_t *from) { return from[0] | static_cast<Vector>(from[1]) << 16; }
    static void store(uint16_t *to, Vector x) {
        to[0] = static_cast<uint16_t>(x);
        to[1] = static_cast<uint16_t>(x >> 16);
    }
    static Vector exchanged(Vector x) {
#if defined(__CUDA_ARCH__)
        Vector other;  // in one instruction: the compiler would take the halves of `x` apart
        asm("prmt.b32 %0, %1, %1, 0x1032;" : "=r"(other) : "r"(x));
        return other;
#else
        return x >> 16 | x << 16;
#endif
    }

protected:
#if !defined(__CUDA_ARCH__)
    static uint32_t exact_step(uint32_t a, uint32_t b, uint32_t acc, const Format &format) {
        const double product = value_of(a & 0xFFFF, format) * value_of(b & 0xFFFF, format);
        const double sum = GenericRounder(format)(sum_to_odd(product, value_of(acc & 0xFFFF, format)));
        return sum != sum ? 0x7FFF : code_of(sum, format);
    }
    static Vector exact_steps(Vector a, Vector b, Vector acc, const Format &format) {
        return exact_step(a, b, acc, format) | exact_step(a >> 16, b >> 16, acc >> 16, format) << 16;
    }
#endif
};

struct HalfStep : HalfPairs {
    explicit HalfStep(const Rule &) {}
    Vector operator()(Vector a, Vector b, Vector acc) const {
#if defined(__CUDA_ARCH__)
        Vector sum;
        asm("fma.rn.f16x2 %0, %1, %2, %3;" : "=r"(sum) : "r"(a), "r"(b), "r"(acc));
        return sum;
#else
        return exact_steps(a, b, acc, {5, 10, 15});
#endif
    }
};

// From sm_80 on.
struct BrainStep : HalfPairs {
    explicit BrainStep(const Rule &) {}
    Vector operator()(Vector a, Vector b, Vector acc) const {
#if defined(__CUDA_ARCH__)
        Vector sum;
        asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(sum) : "r"(a), "r"(b), "r"(acc));
        return sum;
#else
        return exact_steps(a, b, acc, {8, 7, 127});
#endif
    }
};

}  // namespace
