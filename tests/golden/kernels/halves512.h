// Stands in for golden/kernels/source/halves512.h on a processor without AVX512-FP16: the same fused step on thirty-two
// float16 values, by another road: a float sum rounded to odd, then the conversion instruction of F16C.
#pragma once

#include <cstdint>
#include <immintrin.h>

#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,prefer-vector-width=512")

namespace {

struct Halves {
    using Element = uint16_t;
    using Vector = __m512i;
    static constexpr int COUNT = 32;
    static constexpr int DOWN = _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC;
    static constexpr int UP = _MM_FROUND_TO_POS_INF | _MM_FROUND_NO_EXC;

    static Vector load(const uint16_t *from) { return _mm512_loadu_si512(from); }
    static Vector factors(const uint16_t *from) { return load(from); }
    static void store(uint16_t *to, Vector x) { _mm512_storeu_si512(to, x); }
    static Vector all(uint16_t code) { return _mm512_set1_epi16(static_cast<short>(code)); }

    static __m256i multiply_add(__m256i a, __m256i b, __m256i c) {
        const __m512 x = _mm512_cvtph_ps(a), y = _mm512_cvtph_ps(b), z = _mm512_cvtph_ps(c);
        const __m512i down = _mm512_castps_si512(_mm512_fmadd_round_ps(x, y, z, DOWN));
        const __m512i up = _mm512_castps_si512(_mm512_fmadd_round_ps(x, y, z, UP));
        const __mmask16 odd = _mm512_test_epi32_mask(down, _mm512_set1_epi32(1));
        return _mm512_cvtps_ph(_mm512_castsi512_ps(_mm512_mask_blend_epi32(odd, up, down)),
                               _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    }
    static Vector multiply_add(Vector a, Vector b, Vector c) {
        const __m256i low = multiply_add(_mm512_castsi512_si256(a), _mm512_castsi512_si256(b), _mm512_castsi512_si256(c));
        const __m256i high = multiply_add(_mm512_extracti64x4_epi64(a, 1), _mm512_extracti64x4_epi64(b, 1),
                                          _mm512_extracti64x4_epi64(c, 1));
        return _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
    }
};

}  // namespace
