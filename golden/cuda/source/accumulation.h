// Products by the accumulators of other machines: every result is one sum over k, in one thread.
#pragma once

#include "finish.h"
#include "one_lane.h"
#include "place.h"

// A product whose panels are WIDTH lanes wide, whose totals are floats, and what sums it.
struct Accumulation {
    Product product;
    AccumulatorRule rule;
};

namespace {

constexpr int ACCUMULATION_WIDTH = 32, ACCUMULATION_ROWS = THREADS / ACCUMULATION_WIDTH;  // a block has so many rows

struct AccumulationMemory {
    int unused;
};
struct AccumulationState {};

// The factors of one result, where they lie in two panels.
struct PanelFactors {
    INLINE void multiply(const AccumulatorRule &rule, int64_t k, machine::Lanes &value, machine::Lanes &exponent) const {
        const float x = k < count ? a[k * ACCUMULATION_WIDTH] : 0, y = k < count ? b[k * ACCUMULATION_WIDTH] : 0;
        double of_x, of_y;
        value.v[0] = machine::factor_of(rule, smallest, x, of_x) * machine::factor_of(rule, smallest, y, of_y);
        exponent.v[0] = of_x + of_y;
    }
    const float *a, *b;
    int64_t count;
    double smallest;
};

INLINE float accumulated(const AccumulatorRule &rule, const PanelFactors &factors, float initial) {
    if (!factors.count) return initial;
    const machine::Lanes zero{}, start{{static_cast<double>(initial)}};
    machine::Lanes total = rule.promote ? zero : start, promoted = rule.promote ? start : zero;
    const int64_t blocks = (factors.count + rule.block - 1) / rule.block;
    machine::add_products(rule, 0, blocks * rule.block, factors, total, promoted);
    return static_cast<float>(rule.promote ? promoted.v[0].number + total.v[0].number : total.v[0].number);
}

INLINE void accumulate_block(const Accumulation &given, Block block, AccumulationMemory &) {
    constexpr int PARTS = ACCUMULATION_WIDTH / ACCUMULATION_ROWS;
    const Product &product = given.product;
    const TilePlace tile(product, block.number / PARTS);
    const int64_t a_panel = along_axes(product.lengths, product.a_axes, tile.batch) * product.row_tiles + tile.row;
    const int64_t b_panel = along_axes(product.lengths, product.b_axes, tile.batch) * product.column_tiles + tile.column;
    const int64_t size = product.depth * ACCUMULATION_WIDTH;
    Threads<AccumulationState> threads;
    threads.each([&](AccumulationState &, int thread) {
        const int64_t row = block.number % PARTS * ACCUMULATION_ROWS + thread / ACCUMULATION_WIDTH;
        const int64_t column = thread % ACCUMULATION_WIDTH;
        const int64_t i = tile.row * ACCUMULATION_WIDTH + row, j = tile.column * ACCUMULATION_WIDTH + column;
        if (i >= product.m || j >= product.n) return;
        const float *const a = static_cast<const float *>(product.a) + a_panel * size + row;
        const float *const b = static_cast<const float *>(product.b) + b_panel * size + column;
        const float initial = Initial(product, tile.batch).at(i, j);
        Final(product, tile.batch).store(i, j, accumulated(given.rule, {a, b, product.k, power_of_two(given.rule.operand_emin)}, initial));
    });
}

}  // namespace
