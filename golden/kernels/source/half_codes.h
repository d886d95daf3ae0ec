// Thirty-two codes of float16 in one AVX-512 register, without an instruction of AVX512-FP16.
#pragma once

#include <cstdint>
#include <immintrin.h>

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx512f,avx512bw,avx512dq,avx512vl"))), apply_to = function)
#elif defined(__GNUC__)
#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,prefer-vector-width=512")
#endif

namespace {

struct HalfCodes {
    using Codes = __m512i;
    using Mask = __mmask32;
    static constexpr int COUNT = 32;
    static constexpr int DOWN = _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC;
    static constexpr int UP = _MM_FROUND_TO_POS_INF | _MM_FROUND_NO_EXC;

    static Codes codes(uint16_t code) { return _mm512_set1_epi16(static_cast<short>(code)); }
    static Codes add(Codes x, Codes y) { return _mm512_add_epi16(x, y); }
    static Codes magnitudes(Codes x) { return _mm512_and_si512(x, codes(0x7FFF)); }
    static Codes increased(Codes counts, Mask where) {
        return _mm512_mask_sub_epi16(counts, where, counts, codes(0xFFFF));
    }
    static Codes larger(Codes x, Codes y) { return _mm512_max_epu16(x, y); }
    static Codes smaller_where(Mask where, Codes x, Codes y) { return _mm512_mask_min_epu16(x, where, x, y); }
    static bool all_below(Codes x, uint16_t limit) { return _mm512_cmpge_epu16_mask(x, codes(limit)) == 0; }
    static bool all_above(Codes x, uint16_t limit) { return _mm512_cmple_epu16_mask(x, codes(limit)) == 0; }

    // Sixteen of the codes, and floats and words of them.
    static __m256i half(Codes x, int part) {
        return part ? _mm512_extracti64x4_epi64(x, 1) : _mm512_castsi512_si256(x);
    }
    static __m256i larger_half(Codes x) { return _mm256_max_epu16(half(x, 0), half(x, 1)); }
    static __m256i load_half(const uint16_t *from) {
        return _mm256_loadu_si256(reinterpret_cast<const __m256i *>(from));
    }
    static __m256i all_halves(uint16_t code) { return _mm256_set1_epi16(static_cast<short>(code)); }
    static __m512 widened(__m256i x) { return _mm512_cvtph_ps(x); }
    static __m512i words(Codes x, int part) { return _mm512_cvtepu16_epi32(half(x, part)); }
    static __m512i paired(Codes x) { return _mm512_madd_epi16(x, codes(1)); }  // the sums of neighbours
    static void narrow(uint16_t *to, __m512 x) {
        _mm256_storeu_si256(reinterpret_cast<__m256i *>(to),
                            _mm512_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
    }
};

}  // namespace

#if defined(__clang__)
#pragma clang attribute pop
#elif defined(__GNUC__)
#pragma GCC pop_options
#endif
