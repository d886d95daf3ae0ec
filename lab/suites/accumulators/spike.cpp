// Spike's bulk-normalised dot products: its headers are found by path, nothing of them is here.
#include <cstdint>
#include <vector>

#include "softfloat.h"

static inline float32_t f32(uint32_t bits) { return float32_t{bits}; }

#include "zvbdot.h"

namespace {

template <class Code, class Dot>
void accumulate(int64_t count, int64_t products, const Code *a, const Code *b, uint32_t *totals, Dot dot) {
    for (int64_t i = 0; i < count; i++) {
        const std::vector<Code> x(a + i * products, a + (i + 1) * products), y(b + i * products, b + (i + 1) * products);
        totals[i] = dot(x, y, float32_t{totals[i]}).v;
    }
}

}  // namespace

extern "C" void bfloat16(int64_t count, int64_t products, const uint16_t *a, const uint16_t *b, uint32_t *totals) {
    accumulate(count, products, a, b, totals, zvfwbdot16bf_dot_acc);
}

extern "C" void float8_e4m3fn(int64_t count, int64_t products, const uint8_t *a, const uint8_t *b, uint32_t *totals) {
    accumulate(count, products, a, b, totals, zvfqbdot8f_dot_acc<ofp8_e4m3, ofp8_e4m3>);
}

extern "C" void float8_e5m2(int64_t count, int64_t products, const uint8_t *a, const uint8_t *b, uint32_t *totals) {
    accumulate(count, products, a, b, totals, zvfqbdot8f_dot_acc<ofp8_e5m2, ofp8_e5m2>);
}
