// The dot products of x86's bfloat16 instructions, computed by the processor that runs this.
#include <cstdint>
#include <cstring>
#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace {

constexpr long REQUEST_PERMISSION = 0x1023, TILE_DATA = 18;  // arch_prctl: ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA

struct alignas(64) TileShapes {
    uint8_t palette = 1, start_row = 0, reserved[14] = {};
    uint16_t column_bytes[16] = {64, 64, 64};
    uint8_t rows[16] = {16, 16, 16};
};

}  // namespace

extern "C" int has_vdpbf16ps() { return __builtin_cpu_supports("avx512bf16"); }

extern "C" int has_tdpbf16ps() {
    unsigned a, b, c, d;
    __asm__("cpuid" : "=a"(a), "=b"(b), "=c"(c), "=d"(d) : "a"(7), "c"(0));
    return (d >> 22 & 1) && !syscall(SYS_arch_prctl, REQUEST_PERMISSION, TILE_DATA);
}

// totals[i] += a[i, 0] * b[i, 0] + a[i, 1] * b[i, 1] for pairs that follow each other, `count` sums of `pairs` pairs.
extern "C" __attribute__((target("avx512f,avx512bf16"))) void vdpbf16ps(int64_t count, int64_t pairs, const uint32_t *a,
                                                                       const uint32_t *b, uint32_t *totals) {
    for (int64_t i = 0; i < count; i++) {
        __m512 total = _mm512_castsi512_ps(_mm512_set1_epi32(static_cast<int>(totals[i])));
        for (int64_t pair = 0; pair < pairs; pair++)
            total = _mm512_dpbf16_ps(total, (__m512bh)_mm512_set1_epi32(static_cast<int>(a[i * pairs + pair])),
                                     (__m512bh)_mm512_set1_epi32(static_cast<int>(b[i * pairs + pair])));
        totals[i] = static_cast<uint32_t>(_mm_cvtsi128_si32(_mm512_castsi512_si128(_mm512_castps_si512(total))));
    }
}

// One tile: totals (16, 16) += a (16, 32) times b, whose rows hold pairs of neighbouring rows of the (32, 16) matrix.
extern "C" __attribute__((target("amx-tile,amx-bf16"))) void tdpbf16ps(const uint16_t *a, const uint16_t *b,
                                                                      uint32_t *totals) {
    const TileShapes shapes;
    _tile_loadconfig(&shapes);
    _tile_loadd(0, totals, 64);
    _tile_loadd(1, a, 64);
    _tile_loadd(2, b, 64);
    _tile_dpbf16ps(0, 1, 2);
    _tile_stored(0, totals, 64);
    _tile_release();
}
