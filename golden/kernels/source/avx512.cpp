// AVX-512: sixteen floats at a time; the rounding of each instruction is part of the instruction.
#include "path.h"

#if defined(__x86_64__) || defined(_M_X64)

#include <cmath>
#include <cstring>
#include <immintrin.h>

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma"))), \
                             apply_to = function)
#elif defined(__GNUC__)
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,prefer-vector-width=512")
#endif

#include "lanes512.h"
#include "vector_modes.h"

const Path *avx512_path() {
    static const Path path = path_with_modes<Rounding::nearest>();
    return &path;
}

#if defined(__clang__)
#pragma clang attribute pop
#endif

#else

const Path *avx512_path() { return nullptr; }

#endif
