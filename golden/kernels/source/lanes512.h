// Sixteen floats or words in one AVX-512 register.
#pragma once

#include <cstdint>
#include <immintrin.h>

namespace {

struct Lanes {
    using Floats = __m512;
    using Words = __m512i;
    static constexpr int COUNT = 16;
    // Tiles that fill the 32 registers: 24 sums of floats; fewer where constants need registers, too.
    static constexpr int VECTORS = 4, SINGLE_ROWS = 6, SCALED_ROWS = 4;

    static constexpr int DOWN = _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC;
    static constexpr int UP = _MM_FROUND_TO_POS_INF | _MM_FROUND_NO_EXC;

    static Floats load(const float *from) { return _mm512_loadu_ps(from); }
    static void store(float *to, Floats x) { _mm512_storeu_ps(to, x); }
    static Floats floats(float x) { return _mm512_set1_ps(x); }
    static Words words(uint32_t x) { return _mm512_set1_epi32(static_cast<int>(x)); }
    static Words as_words(Floats x) { return _mm512_castps_si512(x); }
    static Floats as_floats(Words x) { return _mm512_castsi512_ps(x); }

    static Floats multiply(Floats a, Floats b) { return _mm512_mul_ps(a, b); }
    static Floats multiply_add(Floats a, Floats b, Floats c) { return _mm512_fmadd_ps(a, b, c); }

    // An exact zero is taken from the sum rounded up: +0 but for the sum of two negative zeros, as to nearest.
    static Words odd_of(Floats down, Floats up) {
        const __mmask16 odd = _mm512_test_epi32_mask(as_words(down), words(1));
        return _mm512_mask_mov_epi32(as_words(up), odd, as_words(down));
    }
    static Words multiply_add_to_odd(Floats a, Floats b, Floats c) {
        return odd_of(_mm512_fmadd_round_ps(a, b, c, DOWN), _mm512_fmadd_round_ps(a, b, c, UP));
    }
    static Words multiply_to_odd(Floats a, Floats b) {
        return odd_of(_mm512_mul_round_ps(a, b, DOWN), _mm512_mul_round_ps(a, b, UP));
    }
    static Floats joined(__m256 low, __m256 high) { return _mm512_insertf32x8(_mm512_castps256_ps512(low), high, 1); }
    static Words doubles_to_odd(const double *from, double factor) {
        const __m512d low = _mm512_mul_pd(_mm512_loadu_pd(from), _mm512_set1_pd(factor));
        const __m512d high = _mm512_mul_pd(_mm512_loadu_pd(from + 8), _mm512_set1_pd(factor));
        return odd_of(joined(_mm512_cvt_roundpd_ps(low, DOWN), _mm512_cvt_roundpd_ps(high, DOWN)),
                      joined(_mm512_cvt_roundpd_ps(low, UP), _mm512_cvt_roundpd_ps(high, UP)));
    }

    static Words both(Words x, Words y) { return _mm512_and_si512(x, y); }
    static Words either(Words x, Words y) { return _mm512_or_si512(x, y); }
    static Words or_and(Words x, Words y, Words z) { return _mm512_ternarylogic_epi32(x, y, z, 0xF8); }  // x | y & z
    static Words add(Words x, Words y) { return _mm512_add_epi32(x, y); }
    static Words shift_right(Words x, Words by) { return _mm512_srlv_epi32(x, by); }
    static Words shift_left(Words x, Words by) { return _mm512_sllv_epi32(x, by); }
    static Words smaller(Words x, Words y) { return _mm512_min_epu32(x, y); }
    static Words larger(Words x, Words y) { return _mm512_max_epu32(x, y); }

    static Words exclusive(Words x, Words y, Words z) { return _mm512_ternarylogic_epi32(x, y, z, 0x96); }
    static Words flipped(Words x, Words where, Words bits) {  // x ^ where & bits
        return _mm512_ternarylogic_epi32(x, where, bits, 0x78);
    }
    static Words signs(Words x) { return _mm512_srai_epi32(x, 31); }  // all ones where x is negative
    static Words multiply_even(Words x, Words y) { return _mm512_mul_epu32(x, y); }
    static Words upper(Words x) { return _mm512_srli_epi64(x, 32); }
    static Words interleaved(Words even, Words odd) {
        return _mm512_mask_mov_epi32(_mm512_slli_epi64(odd, 32), 0x5555, even);
    }
    static Words quieted(Words x) { return x; }  // this processor's NaN rounds to itself
    // `by` where limit <= |x| < infinity.
    static Words replaced(Words x, Floats limit, Words by) {
        const Floats magnitude = _mm512_abs_ps(as_floats(x));
        const __mmask16 beyond = _mm512_cmp_ps_mask(magnitude, limit, _CMP_GE_OQ);
        const __mmask16 finite = _mm512_mask_cmp_ps_mask(beyond, magnitude, as_floats(words(0x7F800000)), _CMP_LT_OQ);
        return _mm512_mask_mov_epi32(x, finite, by);
    }

    // Infinity of the sign of x where |x| >= limit; a NaN stays.
    static Floats infinite_from(Floats x, Floats limit) {
        const __mmask16 beyond = _mm512_cmp_ps_mask(_mm512_abs_ps(x), limit, _CMP_GE_OQ);
        // sign of x, or infinity: x & y | z
        const Words infinite =
            _mm512_mask_ternarylogic_epi32(as_words(x), beyond, words(0x80000000), words(0x7F800000), 0xEA);
        return as_floats(infinite);
    }
    // A zero of the sign of y where |x| < limit.
    static Floats zero_below(Floats x, Floats limit, Floats y) {
        const __mmask16 below = _mm512_cmp_ps_mask(_mm512_abs_ps(x), limit, _CMP_LT_OQ);
        return as_floats(_mm512_mask_and_epi32(as_words(y), below, as_words(y), words(0x80000000)));
    }
    static Words where_nan(Floats x, Words then, Words otherwise) {
        return _mm512_mask_mov_epi32(otherwise, _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q), then);
    }
    static Words where_equal(Words x, Words y, Words then, Words otherwise) {
        return _mm512_mask_mov_epi32(otherwise, _mm512_cmpeq_epu32_mask(x, y), then);
    }
    static Words where_greater(Words x, Words y, Words then, Words otherwise) {
        return _mm512_mask_mov_epi32(otherwise, _mm512_cmpgt_epu32_mask(x, y), then);
    }

    // What is counted: which lanes something holds in, and counts of them.
    static constexpr bool ROUNDS_BY_INSTRUCTION = true;
    static constexpr int COUNTED_SUMS = 4;
    using Mask = __mmask16;
    static Mask has(Words x, Words bits) { return _mm512_test_epi32_mask(x, bits); }
    static Mask ordered(Floats x, Floats y) { return _mm512_cmp_ps_mask(x, y, _CMP_ORD_Q); }
    static Mask at_least(Floats x, Floats limit) { return _mm512_cmp_ps_mask(_mm512_abs_ps(x), limit, _CMP_GE_OQ); }
    static Mask equal_where(Mask where, Floats x, Floats y) {
        return _mm512_mask_cmp_ps_mask(where, x, y, _CMP_EQ_OQ);
    }
    static Mask less_where(Mask where, Words x, Words limit) { return _mm512_mask_cmplt_epu32_mask(where, x, limit); }
    static Mask both_masks(Mask x, Mask y) { return _kand_mask16(x, y); }
    static Mask either_mask(Mask x, Mask y) { return _kor_mask16(x, y); }
    static Mask but_not(Mask x, Mask y) { return _kandn_mask16(y, x); }
    static Words increased(Words counts, Mask where) {
        return _mm512_mask_sub_epi32(counts, where, counts, words(0xFFFFFFFF));
    }
    static Floats only(Mask where, Floats x) { return _mm512_maskz_mov_ps(where, x); }
    static Floats larger_magnitude(Floats x, Floats y) { return _mm512_range_ps(x, y, 0xB); }
    static Mask is_inexact(Floats a, Floats b, Floats c) {
        return _mm512_cmp_ps_mask(_mm512_fmadd_round_ps(a, b, c, DOWN), _mm512_fmadd_round_ps(a, b, c, UP),
                                  _CMP_NEQ_OQ);
    }

    static Words load_words(const uint32_t *from) { return _mm512_loadu_si512(from); }
    static void store_words(uint32_t *to, Words x) { _mm512_storeu_si512(to, x); }
    static Words load_halves(const uint16_t *from) {
        return _mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i *>(from)));
    }
    static void store_halves(uint16_t *to, Words x) {
        _mm256_storeu_si256(reinterpret_cast<__m256i *>(to), _mm512_cvtepi32_epi16(x));
    }
};

// Eight doubles or words of 64 bits in one AVX-512 register.
struct WideLanes {
    using Doubles = __m512d;
    using Words = __m512i;
    static constexpr int COUNT = 8, VECTORS = 4, ROWS = 4;

    static Doubles from_floats(const float *from) { return _mm512_cvtps_pd(_mm256_loadu_ps(from)); }
    static void to_floats(float *to, Doubles x) { _mm256_storeu_ps(to, _mm512_cvtpd_ps(x)); }
    static Doubles doubles(double x) { return _mm512_set1_pd(x); }
    static Words words(uint64_t x) { return _mm512_set1_epi64(static_cast<int64_t>(x)); }
    static Words as_words(Doubles x) { return _mm512_castpd_si512(x); }
    static Doubles as_doubles(Words x) { return _mm512_castsi512_pd(x); }

    static Doubles multiply(Doubles a, Doubles b) { return _mm512_mul_pd(a, b); }
    static Doubles multiply_add(Doubles a, Doubles b, Doubles c) { return _mm512_fmadd_pd(a, b, c); }
    static Words add(Words x, Words y) { return _mm512_add_epi64(x, y); }
    static Words both(Words x, Words y) { return _mm512_and_si512(x, y); }
    static Words exclusive(Words x, Words y) { return _mm512_xor_si512(x, y); }
    static Words exclusive(Words x, Words y, Words z) { return _mm512_ternarylogic_epi64(x, y, z, 0x96); }
    static Words shift_right(Words x, Words by) { return _mm512_srlv_epi64(x, by); }
    static Words upper(Words x) { return _mm512_srli_epi64(x, 32); }
    static Words raised(Words x) { return _mm512_slli_epi64(x, 32); }
    static Words multiply_lower(Words x, Words y) { return _mm512_mul_epu32(x, y); }
    static Words numbered() { return _mm512_setr_epi64(0, 1, 2, 3, 4, 5, 6, 7); }
    static Words quieted(Words x) { return x; }

    // Infinity of the sign of x where |x| >= limit; a NaN stays.
    static Doubles infinite_from(Doubles x, Doubles limit) {
        const __mmask8 beyond = _mm512_cmp_pd_mask(_mm512_abs_pd(x), limit, _CMP_GE_OQ);
        return as_doubles(_mm512_mask_ternarylogic_epi64(as_words(x), beyond, words(1ull << 63), words(0x7FFull << 52), 0xEA));
    }
};

}  // namespace
