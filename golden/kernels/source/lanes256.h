// Eight floats or words in one AVX2 register.
//
// AVX2 has no rounding of its own in an instruction: the environment rounds down, and up is the negative of the negated
// rounded down. What does not round (products by powers of two that stay floats) gives the same in either environment.
#pragma once

#include <cstdint>
#include <immintrin.h>

namespace {

struct Lanes {
    using Floats = __m256;
    using Words = __m256i;
    static constexpr int COUNT = 8;
    // Tiles for 16 registers: 12 sums of floats; fewer where constants need registers, too.
    static constexpr int VECTORS = 2, SINGLE_ROWS = 6, SCALED_ROWS = 4;

    static Floats load(const float *from) { return _mm256_loadu_ps(from); }
    static void store(float *to, Floats x) { _mm256_storeu_ps(to, x); }
    static Floats floats(float x) { return _mm256_set1_ps(x); }
    static Words words(uint32_t x) { return _mm256_set1_epi32(static_cast<int>(x)); }
    static Words as_words(Floats x) { return _mm256_castps_si256(x); }
    static Floats as_floats(Words x) { return _mm256_castsi256_ps(x); }

    static Floats multiply(Floats a, Floats b) { return _mm256_mul_ps(a, b); }
    static Floats multiply_add(Floats a, Floats b, Floats c) { return _mm256_fmadd_ps(a, b, c); }

    // An exact zero is taken from the sum rounded up: +0 but for the sum of two negative zeros, as to nearest.
    static Words odd_of(Floats down, Floats negated_up) {
        const Words up = _mm256_xor_si256(as_words(negated_up), words(0x80000000));
        const Words odd = _mm256_slli_epi32(as_words(down), 31);
        return as_words(_mm256_blendv_ps(as_floats(up), down, as_floats(odd)));
    }
    static Words multiply_add_to_odd(Floats a, Floats b, Floats c) {
        return odd_of(_mm256_fmadd_ps(a, b, c), _mm256_fnmsub_ps(a, b, c));
    }
    static Words multiply_to_odd(Floats a, Floats b) {
        return odd_of(_mm256_mul_ps(a, b), _mm256_mul_ps(_mm256_xor_ps(a, floats(-0.0f)), b));
    }
    static Words doubles_to_odd(const double *from, double factor) {
        const __m256d low = _mm256_mul_pd(_mm256_loadu_pd(from), _mm256_set1_pd(factor));
        const __m256d high = _mm256_mul_pd(_mm256_loadu_pd(from + 4), _mm256_set1_pd(factor));
        const __m256d sign = _mm256_set1_pd(-0.0);
        return odd_of(
            _mm256_set_m128(_mm256_cvtpd_ps(high), _mm256_cvtpd_ps(low)),
            _mm256_set_m128(_mm256_cvtpd_ps(_mm256_xor_pd(high, sign)), _mm256_cvtpd_ps(_mm256_xor_pd(low, sign))));
    }

    static Words both(Words x, Words y) { return _mm256_and_si256(x, y); }
    static Words either(Words x, Words y) { return _mm256_or_si256(x, y); }
    static Words or_and(Words x, Words y, Words z) { return either(x, both(y, z)); }
    static Words add(Words x, Words y) { return _mm256_add_epi32(x, y); }
    static Words shift_right(Words x, Words by) { return _mm256_srlv_epi32(x, by); }
    static Words shift_left(Words x, Words by) { return _mm256_sllv_epi32(x, by); }
    static Words smaller(Words x, Words y) { return _mm256_min_epu32(x, y); }
    static Words larger(Words x, Words y) { return _mm256_max_epu32(x, y); }

    static Words choose(Words where, Words then, Words otherwise) { return _mm256_blendv_epi8(otherwise, then, where); }

    static Words exclusive(Words x, Words y, Words z) { return _mm256_xor_si256(x, _mm256_xor_si256(y, z)); }
    static Words flipped(Words x, Words where, Words bits) {  // x ^ where & bits
        return _mm256_xor_si256(x, both(where, bits));
    }
    static Words signs(Words x) { return _mm256_srai_epi32(x, 31); }  // all ones where x is negative
    static Words multiply_even(Words x, Words y) { return _mm256_mul_epu32(x, y); }
    static Words upper(Words x) { return _mm256_srli_epi64(x, 32); }
    static Words interleaved(Words even, Words odd) {
        return _mm256_blend_epi32(_mm256_slli_epi64(odd, 32), even, 0x55);
    }
    static Words quieted(Words x) { return x; }  // this processor's NaN rounds to itself
    // `by` where limit <= |x| < infinity.
    static Words replaced(Words x, Floats limit, Words by) {
        const Floats magnitude = _mm256_andnot_ps(floats(-0.0f), as_floats(x));
        const Floats finite = _mm256_cmp_ps(magnitude, as_floats(words(0x7F800000)), _CMP_LT_OQ);
        const Floats beyond = _mm256_and_ps(_mm256_cmp_ps(magnitude, limit, _CMP_GE_OQ), finite);
        return as_words(_mm256_blendv_ps(as_floats(x), as_floats(by), beyond));
    }

    // Infinity of the sign of x where |x| >= limit; a NaN stays.
    static Floats infinite_from(Floats x, Floats limit) {
        const Floats sign = _mm256_and_ps(x, floats(-0.0f));
        const Floats beyond = _mm256_cmp_ps(_mm256_xor_ps(x, sign), limit, _CMP_GE_OQ);
        return _mm256_blendv_ps(x, _mm256_or_ps(sign, as_floats(words(0x7F800000))), beyond);
    }
    // A zero of the sign of y where |x| < limit.
    static Floats zero_below(Floats x, Floats limit, Floats y) {
        const Floats sign = floats(-0.0f);
        const Floats below = _mm256_cmp_ps(_mm256_andnot_ps(sign, x), limit, _CMP_LT_OQ);
        return _mm256_andnot_ps(_mm256_andnot_ps(sign, below), y);
    }
    static Words where_nan(Floats x, Words then, Words otherwise) {
        return choose(as_words(_mm256_cmp_ps(x, x, _CMP_UNORD_Q)), then, otherwise);
    }
    static Words where_equal(Words x, Words y, Words then, Words otherwise) {
        return choose(_mm256_cmpeq_epi32(x, y), then, otherwise);
    }
    // Of magnitudes, which are below 2^31, so that the signed comparison is right.
    static Words where_greater(Words x, Words y, Words then, Words otherwise) {
        return choose(_mm256_cmpgt_epi32(x, y), then, otherwise);
    }

    // What is counted: which lanes something holds in, all ones there, and counts of them.
    static constexpr bool ROUNDS_BY_INSTRUCTION = false;
    static constexpr int COUNTED_SUMS = 2;
    using Mask = __m256i;
    static Mask has(Words x, Words bits) {
        return _mm256_xor_si256(_mm256_cmpeq_epi32(both(x, bits), words(0)), words(0xFFFFFFFF));
    }
    static Mask ordered(Floats x, Floats y) { return as_words(_mm256_cmp_ps(x, y, _CMP_ORD_Q)); }
    static Mask at_least(Floats x, Floats limit) {
        return as_words(_mm256_cmp_ps(_mm256_andnot_ps(floats(-0.0f), x), limit, _CMP_GE_OQ));
    }
    static Mask equal_where(Mask where, Floats x, Floats y) {
        return both(where, as_words(_mm256_cmp_ps(x, y, _CMP_EQ_OQ)));
    }
    // Of magnitudes, as above.
    static Mask less_where(Mask where, Words x, Words limit) { return both(where, _mm256_cmpgt_epi32(limit, x)); }
    static Mask both_masks(Mask x, Mask y) { return both(x, y); }
    static Mask either_mask(Mask x, Mask y) { return either(x, y); }
    static Mask but_not(Mask x, Mask y) { return _mm256_andnot_si256(y, x); }
    static Words increased(Words counts, Mask where) { return _mm256_sub_epi32(counts, where); }
    static Floats only(Mask where, Floats x) { return _mm256_and_ps(as_floats(where), x); }
    static Floats larger_magnitude(Floats x, Floats y) {
        return as_floats(larger(as_words(x), both(as_words(y), words(0x7FFFFFFF))));
    }

    // In an environment that rounds down.
    static Mask is_inexact(Floats a, Floats b, Floats c) {
        const Floats up = _mm256_xor_ps(_mm256_fnmsub_ps(a, b, c), floats(-0.0f));
        return as_words(_mm256_cmp_ps(_mm256_fmadd_ps(a, b, c), up, _CMP_NEQ_OQ));
    }

    static Words load_words(const uint32_t *from) {
        return _mm256_loadu_si256(reinterpret_cast<const __m256i *>(from));
    }
    static void store_words(uint32_t *to, Words x) { _mm256_storeu_si256(reinterpret_cast<__m256i *>(to), x); }
    static Words load_halves(const uint16_t *from) {
        return _mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i *>(from)));
    }
    static void store_halves(uint16_t *to, Words x) {
        const Words packed = _mm256_permute4x64_epi64(_mm256_packus_epi32(x, x), 0xD8);
        _mm_storeu_si128(reinterpret_cast<__m128i *>(to), _mm256_castsi256_si128(packed));
    }
};

// Four doubles or words of 64 bits in one AVX2 register.
struct WideLanes {
    using Doubles = __m256d;
    using Words = __m256i;
    static constexpr int COUNT = 4, VECTORS = 4, ROWS = 2;

    static Doubles from_floats(const float *from) { return _mm256_cvtps_pd(_mm_loadu_ps(from)); }
    static void to_floats(float *to, Doubles x) { _mm_storeu_ps(to, _mm256_cvtpd_ps(x)); }
    static Doubles doubles(double x) { return _mm256_set1_pd(x); }
    static Words words(uint64_t x) { return _mm256_set1_epi64x(static_cast<int64_t>(x)); }
    static Words as_words(Doubles x) { return _mm256_castpd_si256(x); }
    static Doubles as_doubles(Words x) { return _mm256_castsi256_pd(x); }

    static Doubles multiply(Doubles a, Doubles b) { return _mm256_mul_pd(a, b); }
    static Doubles multiply_add(Doubles a, Doubles b, Doubles c) { return _mm256_fmadd_pd(a, b, c); }
    static Words add(Words x, Words y) { return _mm256_add_epi64(x, y); }
    static Words both(Words x, Words y) { return _mm256_and_si256(x, y); }
    static Words exclusive(Words x, Words y) { return _mm256_xor_si256(x, y); }
    static Words exclusive(Words x, Words y, Words z) { return exclusive(x, exclusive(y, z)); }
    static Words shift_right(Words x, Words by) { return _mm256_srlv_epi64(x, by); }
    static Words upper(Words x) { return _mm256_srli_epi64(x, 32); }
    static Words raised(Words x) { return _mm256_slli_epi64(x, 32); }
    static Words multiply_lower(Words x, Words y) { return _mm256_mul_epu32(x, y); }
    static Words numbered() { return _mm256_setr_epi64x(0, 1, 2, 3); }
    static Words quieted(Words x) { return x; }

    // Infinity of the sign of x where |x| >= limit; a NaN stays.
    static Doubles infinite_from(Doubles x, Doubles limit) {
        const Doubles sign = _mm256_and_pd(x, doubles(-0.0));
        const Doubles beyond = _mm256_cmp_pd(_mm256_xor_pd(x, sign), limit, _CMP_GE_OQ);
        return _mm256_blendv_pd(x, _mm256_or_pd(sign, as_doubles(words(0x7FFull << 52))), beyond);
    }
};

}  // namespace
