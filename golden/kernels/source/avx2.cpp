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
#include "vector_modes.h"

const Path *avx2_path() {
    static const Path path = path_with_modes<Rounding::down>();
    return &path;
}

#if defined(__clang__)
#pragma clang attribute pop
#endif

#else

const Path *avx2_path() { return nullptr; }

#endif
