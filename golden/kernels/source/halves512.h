// Thirty-two float16 values in one AVX-512 register, with the processor's own fused step.
//
// AVX512-FP16 neither flushes float16's subnormals nor rounds twice: its step is that of NUMERICS section 4.
#pragma once

#include <cstdint>
#include <immintrin.h>

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx512fp16,avx512f,avx512bw,avx512dq,avx512vl"))), \
                             apply_to = function)
#elif defined(__GNUC__)
#pragma GCC target("avx512fp16,avx512f,avx512bw,avx512dq,avx512vl,prefer-vector-width=512")
#endif

namespace {

struct Halves {
    using Element = uint16_t;
    using Vector = __m512h;
    static constexpr int COUNT = 32;

    static Vector load(const uint16_t *from) { return _mm512_loadu_ph(from); }
    static Vector factors(const uint16_t *from) { return load(from); }
    static void store(uint16_t *to, Vector x) { _mm512_storeu_ph(to, x); }
    static Vector all(uint16_t code) { return _mm512_castsi512_ph(_mm512_set1_epi16(static_cast<short>(code))); }
    static Vector multiply_add(Vector a, Vector b, Vector c) { return _mm512_fmadd_ph(a, b, c); }
};

}  // namespace
