// Stands in for golden/kernels/source/halves512.h on a processor without AVX512-FP16: the same fused step on thirty-two
// float16 values, by another road: a float sum rounded to odd, then the conversion instruction of F16C.
#pragma once

#include <cstdint>
#include <immintrin.h>

#include "half_codes.h"

#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,prefer-vector-width=512")

namespace {

struct Halves : HalfCodes {
    using Element = uint16_t;
    using Vector = __m512i;
    static constexpr int NEAREST = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;

    static Vector load(const uint16_t *from) { return _mm512_loadu_si512(from); }
    static Vector factors(const uint16_t *from) { return load(from); }
    static void store(uint16_t *to, Vector x) { _mm512_storeu_si512(to, x); }
    static Vector all(uint16_t code) { return _mm512_set1_epi16(static_cast<short>(code)); }

    // The exact a * b + c as a float rounded to odd, from which float16 is rounded in any way.
    static __m512 sum_to_odd(__m256i a, __m256i b, __m256i c) {
        const __m512 x = _mm512_cvtph_ps(a), y = _mm512_cvtph_ps(b), z = _mm512_cvtph_ps(c);
        const __m512i down = _mm512_castps_si512(_mm512_fmadd_round_ps(x, y, z, DOWN));
        const __m512i up = _mm512_castps_si512(_mm512_fmadd_round_ps(x, y, z, UP));
        const __mmask16 odd = _mm512_test_epi32_mask(down, _mm512_set1_epi32(1));
        return _mm512_castsi512_ps(_mm512_mask_blend_epi32(odd, up, down));
    }
    static __m256i low(Vector x) { return _mm512_castsi512_si256(x); }
    static __m256i high(Vector x) { return _mm512_extracti64x4_epi64(x, 1); }

    static Vector multiply_add(Vector a, Vector b, Vector c) {
        const __m256i lower = _mm512_cvtps_ph(sum_to_odd(low(a), low(b), low(c)), NEAREST);
        const __m256i upper = _mm512_cvtps_ph(sum_to_odd(high(a), high(b), high(c)), NEAREST);
        return _mm512_inserti64x4(_mm512_castsi256_si512(lower), upper, 1);
    }
    static __mmask16 differ(__m512 x) {
        return _mm512_cmp_ps_mask(_mm512_cvtph_ps(_mm512_cvtps_ph(x, DOWN)), _mm512_cvtph_ps(_mm512_cvtps_ph(x, UP)),
                                  _CMP_NEQ_OQ);
    }
    static Mask is_inexact(Vector a, Vector b, Vector c) {
        return _mm512_kunpackw(differ(sum_to_odd(high(a), high(b), high(c))),
                               differ(sum_to_odd(low(a), low(b), low(c))));
    }
    static Mask same_where(Mask where, Vector x, Vector y) { return _mm512_mask_cmpeq_epi16_mask(where, x, y); }
};

}  // namespace
