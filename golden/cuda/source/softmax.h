// Softmax with every operation rounded to a short format (NUMERICS section 6), on scaled values.
//
// The sum of a row is one chain: a thread has a row then, and a tile of the row stands in shared memory. Before and after,
// a warp has a row, so that its threads read neighbours.
#pragma once

#include "rounding.h"
#include "threads.h"

namespace {

constexpr int SOFTMAX_ROWS = 64, SOFTMAX_COLUMNS = 32;       // of a tile
constexpr int WARPS = THREADS / 32, ROWS_OF_WARP = SOFTMAX_ROWS / WARPS;
static_assert(SOFTMAX_COLUMNS == 32, "a warp reads a row of a tile");

struct SoftmaxMemory {
    float values[SOFTMAX_ROWS][SOFTMAX_COLUMNS + 1];
    float largest[SOFTMAX_ROWS], sums[SOFTMAX_ROWS];
};

struct SoftmaxState {
    float largest[ROWS_OF_WARP];
    float sum;
};

class SoftmaxRow {
public:
    explicit INLINE SoftmaxRow(const Softmax &given)
        : given_(given),
          format_(format_of(given.target)),
          rounder_(format_),
          place_(format_),
          step_(Rule{format_, float_of(format_.inf() << (FLOAT_FRACTION - format_.fraction_bits))}),
          scale_(float_power(format_.scale())),
          unscaled_(float_power(-format_.scale())) {}

    // A scaled value.
    INLINE float at(int64_t row, int64_t column) const {
        return rounder_(load_value(given_.memory, given_.values, row * given_.length + column));
    }

    INLINE float exponential(float x, float largest) const {
        const float difference = step_(x, 1, -largest);
        if (is_nan(difference)) return difference;
        const uint32_t code = (bits_of(difference) & MAGNITUDE) >> (FLOAT_FRACTION - format_.fraction_bits);
        return given_.exponentials[code < format_.inf() ? code : format_.inf()] * scale_;
    }

    INLINE float sum(float total, float term) const { return step_(term, 1, total); }

    // The exact quotient rounded once: first to odd in float, of which the remainder tells the last bit. Between them the
    // terms are times 2^SPARE, so that neither quotient nor remainder are below the normal values of float.
    INLINE float quotient(float term, float total) const {
        const float dividend = term * 0x1p100f, divisor = total * unscaled_;
        const float nearest = dividend / divisor, rest = fmaf(-nearest, divisor, dividend);
        uint32_t odd = bits_of(nearest);
        if ((odd & 1) == 0 && (rest > 0 || rest < 0)) odd += rest > 0 ? 1 : ~0u;
        const Lanes::Words scaled = Lanes::multiply_to_odd(Lanes::floats(float_of(odd)), Lanes::floats(0x1p-100f));
        return is_nan(nearest) ? nearest : Lanes::as_floats(place_.round(scaled));
    }

    INLINE void store(int64_t row, int64_t column, float scaled) const {
        store_value(given_.result_memory, given_.result, row * given_.length + column, scaled * unscaled_);
    }

private:
    const Softmax &given_;
    const Format format_;
    const ShortRounder rounder_;
    const LastPlace place_;
    const LimitedStep step_;
    const float scale_, unscaled_;
};

INLINE void softmax_block(const Softmax &given, Block block, SoftmaxMemory &shared) {
    const int64_t row0 = block.number * SOFTMAX_ROWS, left = given.rows - row0;
    const int rows = left < SOFTMAX_ROWS ? static_cast<int>(left) : SOFTMAX_ROWS;
    const SoftmaxRow softmax(given);
    Threads<SoftmaxState> threads;

    threads.each([&](SoftmaxState &state, int thread) {
        const int warp = thread / 32, lane = thread % 32;
        UNROLL
        for (int i = 0; i < ROWS_OF_WARP; i++) state.largest[i] = -float_of(INFINITY_BITS);
        for (int64_t column = lane; column < given.length; column += 32)
            UNROLL
            for (int i = 0; i < ROWS_OF_WARP; i++) {
                const int row = i * WARPS + warp;
                if (row >= rows) continue;
                const float x = softmax.at(row0 + row, column);
                state.largest[i] = is_nan(x) || x > state.largest[i] ? x : state.largest[i];
            }
        UNROLL
        for (int i = 0; i < ROWS_OF_WARP; i++) shared.values[i * WARPS + warp][lane] = state.largest[i];
    });
    threads.each([&](SoftmaxState &state, int thread) {
        state.sum = 0;
        if (thread >= rows) return;
        float largest = shared.values[thread][0];
        for (int i = 1; i < SOFTMAX_COLUMNS; i++) {
            const float x = shared.values[thread][i];
            largest = is_nan(x) || x > largest ? x : largest;
        }
        shared.largest[thread] = largest;
    });

    for (int64_t column0 = 0; column0 < given.length; column0 += SOFTMAX_COLUMNS) {
        const int64_t rest = given.length - column0;
        const int columns = rest < SOFTMAX_COLUMNS ? static_cast<int>(rest) : SOFTMAX_COLUMNS;
        threads.each([&](SoftmaxState &, int thread) {
            const int lane = thread % 32;
            UNROLL_BY(4)
            for (int row = thread / 32; row < rows; row += WARPS)
                if (lane < columns)
                    shared.values[row][lane] =
                        softmax.exponential(softmax.at(row0 + row, column0 + lane), shared.largest[row]);
        });
        threads.each([&](SoftmaxState &state, int thread) {
            if (thread >= rows) return;
            for (int i = 0; i < columns; i++) state.sum = softmax.sum(state.sum, shared.values[thread][i]);
        });
    }
    threads.each([&](SoftmaxState &state, int thread) {
        if (thread < rows) shared.sums[thread] = state.sum;
    });
    threads.each([&](SoftmaxState &, int thread) {
        for (int row = thread / 32; row < rows; row += WARPS) {
            const float largest = shared.largest[row], sum = shared.sums[row];
            UNROLL_BY(4)
            for (int64_t column = thread % 32; column < given.length; column += 32) {
                const float term = softmax.exponential(softmax.at(row0 + row, column), largest);
                softmax.store(row0 + row, column, softmax.quotient(term, sum));
            }
        }
    });
}

}  // namespace
