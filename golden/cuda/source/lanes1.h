// One float as `Lanes` and one double as `WideLanes`: what the headers of steps are written over on a device.
//
// A device has a rounding direction in each instruction. The host has none of its own here: it computes the same results
// from exact sums in double, so that every step can be judged where there is no device. CBFLOAT_MODE, a number of `Mode`,
// says how `multiply_add` rounds; nothing else depends on it.
#pragma once

#include <cstdint>

#include "generic_steps.h"

#if !defined(CBFLOAT_MODE)
#define CBFLOAT_MODE 0
#endif

#if !defined(__CUDA_ARCH__)
#include "exact_sums.h"
#endif

namespace {

// The direction in which the steps of a mode want 24 bits of the sum.
constexpr Rounding direction_of(Mode mode) {
    switch (mode) {
        case Mode::down:
            return Rounding::down;
        case Mode::up:
            return Rounding::up;
        case Mode::toward_zero:
        case Mode::nearest_away:
            return Rounding::zero;
        default:
            return Rounding::nearest;
    }
}

struct Lanes {
    using Floats = float;
    using Words = uint32_t;
    static constexpr int COUNT = 1, VECTORS = 1, SINGLE_ROWS = 1, SCALED_ROWS = 1;
    static constexpr Rounding DIRECTION = direction_of(static_cast<Mode>(CBFLOAT_MODE));

    static Floats load(const float *from) { return *from; }
    static void store(float *to, Floats x) { *to = x; }
    static Floats floats(float x) { return x; }
    static Words words(uint32_t x) { return x; }

#if defined(__CUDA_ARCH__)
    static Words as_words(Floats x) { return __float_as_uint(x); }
    static Floats as_floats(Words x) { return __uint_as_float(x); }

    static Floats multiply_add(Floats a, Floats b, Floats c) {
        if constexpr (DIRECTION == Rounding::down) return __fmaf_rd(a, b, c);
        if constexpr (DIRECTION == Rounding::up) return __fmaf_ru(a, b, c);
        if constexpr (DIRECTION == Rounding::zero) return __fmaf_rz(a, b, c);
        return __fmaf_rn(a, b, c);
    }
    // The second sum takes the place of an even first one, in the same register and without a selection.
    static Words multiply_add_to_odd(Floats a, Floats b, Floats c) {
        Words x;
        asm("{\n\t"
            ".reg .f32 sum;\n\t"
            ".reg .b32 last;\n\t"
            ".reg .pred is_even;\n\t"
            "fma.rm.f32 sum, %1, %2, %3;\n\t"
            "and.b32 last, sum, 1;\n\t"
            "setp.eq.u32 is_even, last, 0;\n\t"
            "@is_even fma.rp.f32 sum, %1, %2, %3;\n\t"
            "mov.b32 %0, sum;\n\t"
            "}"
            : "=r"(x)
            : "f"(a), "f"(b), "f"(c));
        return x;
    }
    static Words multiply_to_odd(Floats a, Floats b) { return odd_of(__fmul_rd(a, b), __fmul_ru(a, b)); }
    static Words double_to_odd(double x) { return odd_of(__double2float_rd(x), __double2float_ru(x)); }
#else
    static Words as_words(Floats x) { return bits_of(x); }
    static Floats as_floats(Words x) { return float_of(x); }

    static Floats multiply_add(Floats a, Floats b, Floats c) { return exact::float_sum(double{a} * b, c, DIRECTION); }
    static Words multiply_add_to_odd(Floats a, Floats b, Floats c) {
        const double product = double{a} * b;
        return odd_of(exact::float_sum(product, c, Rounding::down), exact::float_sum(product, c, Rounding::up));
    }
    static Words multiply_to_odd(Floats a, Floats b) { return double_to_odd(double{a} * b); }
    static Words double_to_odd(double x) {
        return odd_of(exact::to_float(x, Rounding::down), exact::to_float(x, Rounding::up));
    }
#endif

    // An exact zero is taken from the sum rounded up: +0 but for the sum of two negative zeros, as to nearest.
    static Words odd_of(Floats down, Floats up) { return (as_words(down) & 1) != 0 ? as_words(down) : as_words(up); }

    static Floats multiply(Floats a, Floats b) { return a * b; }
    static Words both(Words x, Words y) { return x & y; }
    static Words either(Words x, Words y) { return x | y; }
    static Words or_and(Words x, Words y, Words z) { return x | (y & z); }
    static Words exclusive(Words x, Words y, Words z) { return x ^ y ^ z; }
    static Words flipped(Words x, Words where, Words bits) { return x ^ (where & bits); }
    static Words add(Words x, Words y) { return x + y; }
    static Words shift_right(Words x, Words by) { return x >> by; }
    static Words shift_left(Words x, Words by) { return x << by; }
    static Words smaller(Words x, Words y) { return x < y ? x : y; }
    static Words larger(Words x, Words y) { return x > y ? x : y; }
    // All ones where x is negative.
    static Words signs(Words x) { return static_cast<Words>(static_cast<int32_t>(x) >> 31); }
    // A device's NaN is 0x7FFFFFFF, which the rounding of bits would carry into the sign.
    static Words quieted(Words x) {
        const int32_t nan = 0x7FC00000, given = static_cast<int32_t>(x);
        return static_cast<Words>(given < nan ? given : nan);
    }

    // `by` where limit <= |x| < infinity.
    static Words replaced(Words x, Floats limit, Words by) {
        const Words magnitude = x & 0x7FFFFFFF;
        return magnitude >= as_words(limit) && magnitude < 0x7F800000 ? by : x;
    }
    // Infinity of the sign of x where |x| >= limit; a NaN stays.
    static Floats infinite_from(Floats x, Floats limit) {
        const Words infinite = (as_words(x) & 0x80000000) | 0x7F800000;
        return as_floats(as_words(x) & 0x7FFFFFFF) >= limit ? as_floats(infinite) : x;
    }
    static Words where_nan(Floats x, Words then, Words otherwise) { return x != x ? then : otherwise; }
    static Words where_equal(Words x, Words y, Words then, Words otherwise) { return x == y ? then : otherwise; }
    static Words where_greater(Words x, Words y, Words then, Words otherwise) { return x > y ? then : otherwise; }
};

struct WideLanes {
    using Doubles = double;
    using Words = uint64_t;
    static constexpr int COUNT = 1, VECTORS = 1, ROWS = 1;

    static Doubles from_floats(const float *from) { return static_cast<double>(*from); }
    static void to_floats(float *to, Doubles x) { *to = static_cast<float>(x); }
    static Doubles doubles(double x) { return x; }
    static Words words(uint64_t x) { return x; }

#if defined(__CUDA_ARCH__)
    static Words as_words(Doubles x) { return static_cast<Words>(__double_as_longlong(x)); }
    static Doubles as_doubles(Words x) { return __longlong_as_double(static_cast<int64_t>(x)); }
    // Toward zero, in every mode.
    static Doubles multiply_add(Doubles a, Doubles b, Doubles c) { return __fma_rz(a, b, c); }
#else
    static Words as_words(Doubles x) { return bits_of(x); }
    static Doubles as_doubles(Words x) { return double_of(x); }
    static Doubles multiply_add(Doubles a, Doubles b, Doubles c) { return exact::wide_sum_toward_zero(a, b, c); }
#endif

    static Doubles multiply(Doubles a, Doubles b) { return a * b; }
    static Words add(Words x, Words y) { return x + y; }
    static Words both(Words x, Words y) { return x & y; }
    static Words exclusive(Words x, Words y) { return x ^ y; }
    static Words exclusive(Words x, Words y, Words z) { return x ^ y ^ z; }
    static Words shift_right(Words x, Words by) { return x >> by; }
    static Words upper(Words x) { return x >> 32; }
    static Words raised(Words x) { return x << 32; }
    static Words multiply_lower(Words x, Words y) {
        return static_cast<uint64_t>(static_cast<uint32_t>(x)) * static_cast<uint32_t>(y);
    }
    static Words numbered() { return 0; }
    // Which NaN a device returns in doubles is not said: of either sign, it may have bits that rounding would carry out of
    // it. It is a quiet one, so that its upper half tells.
    static Words quieted(Words x) {
        const uint32_t upper = static_cast<uint32_t>(x >> 32) & 0x7FFFFFFF;
        return upper > 0x7FF00000 ? 0x7FF8000000000000 : x;
    }
    // Infinity of the sign of x where |x| >= limit; a NaN stays.
    static Doubles infinite_from(Doubles x, Doubles limit) {
        const Words infinite = (as_words(x) & 1ull << 63) | 0x7FFull << 52;
        return as_doubles(as_words(x) & ~(1ull << 63)) >= limit ? as_doubles(infinite) : x;
    }
};

}  // namespace
