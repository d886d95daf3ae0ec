// Accumulators of other machines with AVX-512: eight doubles at a time.
#include "accumulate.h"

#if (defined(__x86_64__) || defined(_M_X64)) && defined(__GNUC__)

#include <immintrin.h>

#include <cmath>

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma"))), apply_to = function)
#else
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,prefer-vector-width=512")
#endif

#define VECTOR_BYTES 64

namespace {

using V __attribute__((vector_size(VECTOR_BYTES))) = double;

inline V all(double value) { return _mm512_set1_pd(value); }
inline V truncated(V value) { return _mm512_roundscale_pd(value, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC); }
inline V floored(V value) { return _mm512_roundscale_pd(value, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC); }
inline V to_float(V value) { return _mm512_cvtps_pd(_mm512_cvtpd_ps(value)); }

}  // namespace

#include "accumulate_lanes.h"

const AccumulatingPath *accumulating_avx512() { return &PATH; }

#if defined(__clang__)
#pragma clang attribute pop
#endif

#else

const AccumulatingPath *accumulating_avx512() { return nullptr; }

#endif
