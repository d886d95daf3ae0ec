// AVX-512 with float16 arithmetic: chains of float16 are single instructions; the rest is the path without it.
#include "path.h"

#if (defined(__x86_64__) || defined(_M_X64)) && \
    ((defined(__clang__) && __clang_major__ >= 14) || (!defined(__clang__) && defined(__GNUC__) && __GNUC__ >= 12))

#include <cmath>
#include <cstring>
#include <immintrin.h>

#include "halves512.h"
#include "lanes512.h"
#include "half_counts.h"

namespace {

struct HalfStep : Halves {
    static constexpr int VECTORS = 4, ROWS = 6;  // 24 sums of the 32 registers
    explicit HalfStep(const Rule &) {}
    Vector operator()(Vector a, Vector b, Vector acc) const { return multiply_add(a, b, acc); }
};

Path with_halves(const Path &path) {
    // Partial sums join their totals in the tiles of these.
    static const Counted counted = {count_half_chain<HalfStep>, count_half_chain<HalfStep>, nullptr};
    static const Tiles tiles = counting(tiles_of<HalfStep>(Rounding::nearest, nullptr), &counted);
    Path extended = path;
    extended.in(Mode::nearest_even).half = &tiles;
    static const Tiles zero = tiles_of<HalfStep>(Rounding::zero, nullptr);
    static const Tiles down = tiles_of<HalfStep>(Rounding::down, nullptr);
    static const Tiles up = tiles_of<HalfStep>(Rounding::up, nullptr);
    extended.in(Mode::toward_zero).half = &zero;
    extended.in(Mode::down).half = &down;
    extended.in(Mode::up).half = &up;
    return extended;
}

}  // namespace

const Path *avx512fp16_path() {
    static const Path path = with_halves(*avx512_path());
    return &path;
}

#if defined(__clang__)
#pragma clang attribute pop
#endif

#else

const Path *avx512fp16_path() { return nullptr; }

#endif
