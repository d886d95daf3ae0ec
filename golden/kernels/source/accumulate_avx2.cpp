// Accumulators of other machines with AVX2: four doubles at a time.
#include "accumulate.h"

#if (defined(__x86_64__) || defined(_M_X64)) && defined(__GNUC__)

#include <immintrin.h>

#include <cmath>

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,fma"))), apply_to = function)
#else
#pragma GCC target("avx2,fma")
#endif

#define VECTOR_BYTES 32

namespace {

using V __attribute__((vector_size(VECTOR_BYTES))) = double;

inline V all(double value) { return _mm256_set1_pd(value); }
inline V truncated(V value) { return _mm256_round_pd(value, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC); }
inline V floored(V value) { return _mm256_round_pd(value, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC); }
inline V to_float(V value) { return _mm256_cvtps_pd(_mm256_cvtpd_ps(value)); }

}  // namespace

#include "accumulate_lanes.h"

const AccumulatingPath *accumulating_avx2() { return &PATH; }

#if defined(__clang__)
#pragma clang attribute pop
#endif

#else

const AccumulatingPath *accumulating_avx2() { return nullptr; }

#endif
