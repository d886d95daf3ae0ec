// Any format in the modes other than nearest even, in plain C++, as generic.h has it for that one.
//
// `Words` computes the random words of neighbouring results; a path may have a faster one than ScalarPhilox.
#pragma once

#include "generic.h"
#include "generic_mode_steps.h"
#include "philox.h"

namespace {

// The random words of the rows of a tile; nothing in the other modes.
template <Mode MODE, class Words>
class TileWords {
public:
    TileWords(const Rule &rule, int rows) : place_(rule.place), keys_(rule.place) {
        if constexpr (MODE == Mode::stochastic)
            for (int row = 0; row < rows; row++) prepare(row, place_.index + static_cast<uint32_t>(row) * place_.row_stride);
    }

    // Of a row at the `k`-th step of the call.
    void fill(int row, int64_t k, uint32_t *words) const {
        if constexpr (MODE == Mode::stochastic)
            Words::fill(index_[row], PhiloxStep(place_.step + static_cast<uint32_t>(k), keys_), keys_, words);
    }

private:
    void prepare(int row, uint32_t index) {
        for (int column = 0; column < GENERIC_COLUMNS; column++, index += place_.stride) {
            const PhiloxIndex parts(index, place_.call, keys_);
            index_[row][0][column] = parts.first;
            index_[row][1][column] = parts.second;
            index_[row][2][column] = parts.third;
        }
    }

    const Place &place_;
    const PhiloxKeys keys_;
    uint32_t index_[GENERIC_ROWS][3][GENERIC_COLUMNS];
};

template <Mode MODE, class Words>
void rows_in_mode(int rows, int64_t steps, const void *a, const void *b, void *acc, const Rule &rule) {
    const ModeStep<MODE> step(rule);
    const TileWords<MODE, Words> random(rule, rows);
    const float *x = static_cast<const float *>(a), *y = static_cast<const float *>(b);
    float *sums = static_cast<float *>(acc);
    uint32_t words[GENERIC_COLUMNS] = {};
    for (int64_t k = 0; k < steps; k++, x += GENERIC_ROWS, y += GENERIC_COLUMNS)
        for (int row = 0; row < rows; row++) {
            random.fill(row, k, words);
            float *const sum = sums + row * GENERIC_COLUMNS;
            for (int column = 0; column < GENERIC_COLUMNS; column++)
                sum[column] = step(x[row], y[column], sum[column], words[column]);
        }
}

template <Mode MODE, class Words, int ROWS>
void chain_in_mode(int64_t steps, const void *a, const void *b, void *acc, const Rule &rule) {
    rows_in_mode<MODE, Words>(ROWS, steps, a, b, acc, rule);
}

template <Mode MODE, class Words>
void dot_in_mode(int64_t steps, const void *a, const void *b, void *acc, const Rule &rule) {
    const ModeStep<MODE> step(rule);
    const TileWords<MODE, Words> random(rule, 1);
    const float *x = static_cast<const float *>(a), *y = static_cast<const float *>(b);
    float *sums = static_cast<float *>(acc);
    uint32_t words[GENERIC_COLUMNS] = {};
    for (int64_t k = 0; k < steps; k++, x += GENERIC_COLUMNS, y += GENERIC_COLUMNS) {
        random.fill(0, k, words);
        for (int column = 0; column < GENERIC_COLUMNS; column++)
            sums[column] = step(x[column], y[column], sums[column], words[column]);
    }
}

// `count` is that of whole rows of a tile. Without random bits the rows may be of another tile than the generic one.
template <Mode MODE, class Words>
void join_in_mode(int64_t count, const float *partial, float *total, float factor, const Rule &rule) {
    const ModeStep<MODE> step(rule);
    const int rows = static_cast<int>(count / GENERIC_COLUMNS);
    const TileWords<MODE, Words> random(rule, rows);
    uint32_t words[GENERIC_COLUMNS] = {};
    for (int row = 0; row < rows; row++, partial += GENERIC_COLUMNS, total += GENERIC_COLUMNS) {
        random.fill(row, 0, words);
        for (int column = 0; column < GENERIC_COLUMNS; column++)
            total[column] = step(partial[column], factor, total[column], words[column]);
    }
}

template <Mode MODE, class Words>
void convert_in_mode(int64_t count, float *values, const Rule &rule) {
    const ModeRounder<MODE> round(rule);
    Rule here = rule;
    for (int64_t i = 0; i < count; i += GENERIC_COLUMNS) {
        uint32_t words[GENERIC_COLUMNS] = {};
        TileWords<MODE, Words>(here, 1).fill(0, 0, words);
        for (int column = 0; column < GENERIC_COLUMNS && i + column < count; column++)
            values[i + column] = static_cast<float>(round(values[i + column], words[column]));
        here.place.index += GENERIC_COLUMNS * here.place.stride;
    }
}

}  // namespace
