// Thirty-two float16 values in one AVX-512 register, with the processor's own fused step.
//
// AVX512-FP16 neither flushes float16's subnormals nor rounds twice: its step is that of NUMERICS section 4.
#pragma once

#include <cstdint>
#include <immintrin.h>

#include "half_codes.h"

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx512fp16,avx512f,avx512bw,avx512dq,avx512vl"))), \
                             apply_to = function)
#elif defined(__GNUC__)
#pragma GCC target("avx512fp16,avx512f,avx512bw,avx512dq,avx512vl,prefer-vector-width=512")
#endif

namespace {

struct Halves : HalfCodes {
    using Element = uint16_t;
    using Vector = __m512h;

    static Vector load(const uint16_t *from) { return _mm512_loadu_ph(from); }
    static Vector factors(const uint16_t *from) { return load(from); }
    static void store(uint16_t *to, Vector x) { _mm512_storeu_ph(to, x); }
    static Vector all(uint16_t code) { return _mm512_castsi512_ph(_mm512_set1_epi16(static_cast<short>(code))); }
    static Vector multiply_add(Vector a, Vector b, Vector c) { return _mm512_fmadd_ph(a, b, c); }

    static Mask is_inexact(Vector a, Vector b, Vector c) {
        return _mm512_cmp_ph_mask(_mm512_fmadd_round_ph(a, b, c, DOWN), _mm512_fmadd_round_ph(a, b, c, UP), _CMP_NEQ_OQ);
    }
    static Mask same_where(Mask where, Vector x, Vector y) {
        return _mm512_mask_cmpeq_epi16_mask(where, _mm512_castph_si512(x), _mm512_castph_si512(y));
    }
    static Codes magnitudes(Vector x) { return HalfCodes::magnitudes(_mm512_castph_si512(x)); }
};

}  // namespace
