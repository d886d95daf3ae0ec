// Which paths this processor runs.
#include "path.h"

#include "kernels.h"

namespace {

bool runs(int path) {
#if defined(__x86_64__) && (defined(__GNUC__) || defined(__clang__))
    __builtin_cpu_init();
    const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    const bool avx512 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
    switch (path) {
        case CBFLOAT_PORTABLE:
            return true;
        case CBFLOAT_AVX2:
            return avx2;
        case CBFLOAT_AVX512:
            return avx512;
#if (defined(__clang__) && __clang_major__ >= 14) || (!defined(__clang__) && __GNUC__ >= 12)
        case CBFLOAT_AVX512FP16:
            return avx512 && __builtin_cpu_supports("avx512fp16");
#endif
    }
    return false;
#else
    return path == CBFLOAT_PORTABLE;
#endif
}

}  // namespace

const Path *path_numbered(int path) {
    switch (path) {
        case CBFLOAT_AVX2:
            return avx2_path();
        case CBFLOAT_AVX512:
            return avx512_path();
        case CBFLOAT_AVX512FP16:
            return avx512fp16_path();
        default:
            return portable_path();
    }
}

int cbfloat_path_available(int path) {
    return runs(path) && path_numbered(path) != nullptr;
}

int cbfloat_kernels_version(void) { return CBFLOAT_KERNELS_VERSION; }

const char *cbfloat_names(void) { return CBFLOAT_NAMES; }
