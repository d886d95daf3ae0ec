// Products by the accumulators of other machines, cut into rows and lanes around the loops of a path.
#include "accumulate.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <new>

#include "environment.h"
#include "kernels.h"
#include "pool.h"
#include "scratch.h"

namespace {

constexpr int64_t ROWS = 64;     // of a piece of work
constexpr int64_t SEGMENT = 256;  // products that are packed at once, or a few more
constexpr int64_t PRODUCTS_PER_THREAD = 1 << 17;

const AccumulatingPath *accumulating(int64_t path) {
    switch (path) {
        case CBFLOAT_AVX2:
            return accumulating_avx2();
        case CBFLOAT_AVX512:
        case CBFLOAT_AVX512FP16:
            return accumulating_avx512();
        default:
            return accumulating_portable();
    }
}

FusedSum sum_of(const cbfloat_fused_sum &given) {
    return {static_cast<int>(given.terms),    static_cast<int>(given.fraction_bits), static_cast<int>(given.cut),
            static_cast<int>(given.rounding), static_cast<int>(given.result_bits),   static_cast<int>(given.result_emin),
            given.chain != 0,                 given.interleaved != 0};
}

AccumulatorRule rule_of(const cbfloat_accumulator &given) {
    AccumulatorRule rule{};
    rule.block = static_cast<int>(given.block);
    rule.stages = static_cast<int>(given.stages);
    for (int i = 0; i < rule.stages; i++) rule.stage[i] = sum_of(given.sums[i]);
    rule.join = sum_of(given.join);
    rule.ordered = given.order != nullptr;
    for (int i = 0; rule.ordered && i < rule.block; i++) rule.order[i] = static_cast<int>(given.order[i]);
    rule.total_bits = static_cast<int>(given.total_bits);
    rule.total_reach = static_cast<int>(given.total_reach);
    rule.zero_exponent = static_cast<double>(given.zero_exponent);
    rule.zero_total_exponent = static_cast<double>(given.zero_total_exponent);
    rule.products_overflow = given.products_overflow != 0;
    rule.flush = static_cast<Flush>(given.flush);
    rule.depth = given.depth;
    rule.promote = given.promote;
    rule.operand_emin = static_cast<int>(given.operand_emin);
    rule.products_are_floats = 2 * (given.operand_bits + 1) <= 24;
    rule.aligns = rule.join.fraction_bits >= 0;
    for (int i = 0; i < rule.stages; i++) rule.aligns |= rule.stage[i].fraction_bits >= 0;
    return rule;
}

class Accumulation {
public:
    Accumulation(const cbfloat_accumulation &given, const AccumulatingPath &path)
        : given_(given),
          path_(path),
          rule_(rule_of(given.rule)),
          row_groups_((given.m + ROWS - 1) / ROWS),
          column_groups_((given.n + path.lanes - 1) / path.lanes) {
        segment_ = (SEGMENT + rule_.block - 1) / rule_.block * rule_.block;  // whole blocks
    }

    void run() {
        const int64_t pieces = given_.batches * row_groups_ * column_groups_;
        const double products = static_cast<double>(given_.batches * given_.m) * given_.n * given_.k;
        const int64_t worth = static_cast<int64_t>(products / PRODUCTS_PER_THREAD) + 1;
        std::atomic<bool> failed{false};
        run_pieces(static_cast<int>(std::min(given_.threads, worth)), pieces, [&](int64_t piece) {
            try {
                compute(piece);
            } catch (const std::bad_alloc &) {
                failed = true;
            }
        });
        if (failed) throw std::bad_alloc();
    }

private:
    void compute(int64_t piece) const {
        static thread_local Scratch scratch;
        const Environment environment(Rounding::nearest);
        const bool dot = given_.mode == CBFLOAT_DOT;
        const int64_t lanes = path_.lanes, batch = piece / (row_groups_ * column_groups_);
        const int64_t m0 = piece / column_groups_ % row_groups_ * ROWS, n0 = piece % column_groups_ * lanes;
        const int64_t rows = std::min(ROWS, given_.m - m0), columns = std::min(lanes, given_.n - n0);
        const int64_t a_width = dot ? lanes : rows, a_size = a_width * segment_, b_size = lanes * segment_;
        const int64_t sums = rows * lanes;
        auto *memory = static_cast<double *>(
            scratch.reserve((2 * (a_size + b_size + sums)) * static_cast<int64_t>(sizeof(double))));
        double *const a = memory, *const b = a + 2 * a_size, *const totals = b + 2 * b_size, *const outer = totals + sums;
        std::memset(memory, 0, static_cast<size_t>(2 * (a_size + b_size + sums)) * sizeof(double));
        float *const result = given_.result + (batch * given_.m + m0) * given_.n + n0;
        for (int64_t i = 0; i < rows; i++)
            for (int64_t j = 0; j < columns; j++)
                (rule_.promote ? outer : totals)[i * lanes + j] = result[i * given_.n + j];

        for (int64_t k0 = 0; k0 < given_.k; k0 += segment_) {
            const int64_t count = std::min(segment_, given_.k - k0);
            const int64_t whole = (count + rule_.block - 1) / rule_.block * rule_.block;
            pack_lanes(given_.b, batch, n0, columns, k0, count, whole, b, b + b_size);
            if (dot)
                pack_lanes(given_.a, batch, n0, columns, k0, count, whole, a, a + a_size);
            else
                for (int64_t i = 0; i < rows; i++) pack_row(batch, m0 + i, k0, count, whole, a + i * segment_, a_size);
            for (int64_t i = 0; i < rows; i++) {
                const double *const row = dot ? a : a + i * segment_;
                path_.run(rule_, k0, k0 + whole, {row, row + a_size, dot ? lanes : 1}, {b, b + b_size, lanes},
                          totals + i * lanes, outer + i * lanes);
            }
        }
        for (int64_t i = 0; i < rows; i++)
            for (int64_t j = 0; j < columns; j++) result[i * given_.n + j] = code(totals[i * lanes + j], outer[i * lanes + j]);
        scratch.release_above(64 << 20);
    }

    float code(double total, double outer) const {
        const double value = rule_.promote ? static_cast<float>(outer + total) : total;
        float result = static_cast<float>(value);
        if (std::isnan(value)) {
            const uint32_t nan = static_cast<uint32_t>(given_.rule.nan);
            std::memcpy(&result, &nan, sizeof result);
        }
        return result;
    }

    const float *element(const cbfloat_matrix &matrix, int64_t batch, int64_t i, int64_t j) const {
        return static_cast<const float *>(matrix.data) + (matrix.offsets ? matrix.offsets[batch] : 0) +
               i * matrix.row_stride + j * matrix.column_stride;
    }

    void pack_row(int64_t batch, int64_t i, int64_t k0, int64_t count, int64_t whole, double *to, int64_t size) const {
        path_.pack(rule_, count, element(given_.a, batch, i, k0), given_.a.column_stride, to, to + size);
        fill(to + count, to + size + count, whole - count);
    }

    // Both operands of a dot product, and the second of a matrix product, have k along their rows.
    void pack_lanes(const cbfloat_matrix &matrix, int64_t batch, int64_t n0, int64_t columns, int64_t k0, int64_t count,
                    int64_t whole, double *values, double *exponents) const {
        for (int64_t k = 0; k < whole; k++, values += path_.lanes, exponents += path_.lanes) {
            const int64_t used = k < count ? columns : 0;
            if (used)
                path_.pack(rule_, used, element(matrix, batch, k0 + k, n0), matrix.column_stride, values, exponents);
            fill(values + used, exponents + used, path_.lanes - used);
        }
    }

    void fill(double *values, double *exponents, int64_t count) const {
        std::fill_n(values, count, 0.0);
        std::fill_n(exponents, count, rule_.zero_exponent);
    }

    const cbfloat_accumulation &given_;
    const AccumulatingPath &path_;
    const AccumulatorRule rule_;
    const int64_t row_groups_, column_groups_;
    int64_t segment_ = 0;
};

}  // namespace

int cbfloat_accumulate(const struct cbfloat_accumulation *accumulation) {
    const AccumulatingPath *const path = accumulating(accumulation->path);
    if (!path) return 2;
    try {
        Accumulation(*accumulation, *path).run();
    } catch (const std::bad_alloc &) {
        return 1;
    }
    return 0;
}
