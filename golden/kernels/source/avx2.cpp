// AVX2 and FMA: eight floats at a time, in an environment that rounds down where sums are rounded to odd.
#include "path.h"

#if defined(__x86_64__) || defined(_M_X64)

#include <cmath>
#include <cstring>
#include <immintrin.h>

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,fma"))), apply_to = function)
#elif defined(__GNUC__)
#pragma GCC target("avx2,fma")
#endif

#include "lanes256.h"
#include "vectors.h"

const Path *avx2_path() {
    static const Arrays arrays = {Rounding::down,  encode_floats,    encode_doubles,
                                  quantize_floats, quantize_doubles, decode_codes};
    static const Path path = {&GENERIC_ARRAYS,
                              &arrays,
                              &GENERIC_TILES,
                              tiles<SingleStep>(Rounding::nearest),
                              tiles<ScaledStep>(Rounding::down),
                              tiles<LimitedStep>(Rounding::down),
                              nullptr,
                              largest_magnitude};
    return &path;
}

#if defined(__clang__)
#pragma clang attribute pop
#endif

#else

const Path *avx2_path() { return nullptr; }

#endif
