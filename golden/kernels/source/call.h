// The products of one call: the operands as they lie in memory, possibly in exchanged roles.
#pragma once

#include <algorithm>
#include <utility>

#include "kernels.h"
#include "plan.h"

namespace {

constexpr int64_t REGION_ROWS = 1536, REGION_COLUMNS = 1024;
constexpr int64_t COUNTED_ROWS = 384, COUNTED_COLUMNS = 256;  // where each result has counts

int64_t groups(int64_t count, int64_t size) { return (count + size - 1) / size; }

// An operand; with tables, they take the place of the strides.
struct Matrix : cbfloat_matrix {
    Matrix(const cbfloat_matrix &matrix, bool holds_values, const cbfloat_tables *given = nullptr, bool rounded = false)
        : cbfloat_matrix(matrix), as_values(holds_values), is_rounded(rounded) {
        if (given) tables = *given;
    }
    void transpose() {
        std::swap(row_stride, column_stride);
        std::swap(tables.rows, tables.columns);
    }
    int bytes(const Format &format) const { return as_values ? 4 : format.code_bytes(); }

    bool as_values;   // floats, else codes
    bool is_rounded;  // floats that rounding would not change
    cbfloat_tables tables{nullptr, nullptr};
};

// The products of one call, the operands possibly in exchanged roles.
struct Call {
    const Plan &plan;
    int64_t batches, m, n, k, chunk;
    Matrix a, b, initial;  // the rows of b go along n and its columns along k, as those of a along m and k
    char *result;
    int64_t result_row, result_column;  // strides in elements
    int result_bytes;
};

struct Region {
    int64_t batch, m0, m1, n0, n1;
};

const char *start_of(const Matrix &matrix, int64_t batch, int bytes) {
    return static_cast<const char *>(matrix.data) + (matrix.offsets ? matrix.offsets[batch] : 0) * bytes;
}

const char *element(const Matrix &matrix, int64_t batch, int64_t i, int64_t j, int bytes) {
    return start_of(matrix, batch, bytes) + (i * matrix.row_stride + j * matrix.column_stride) * bytes;
}

// Vectors run along n: exchange the operands where that leaves fewer lanes idle (a product of two values commutes).
bool better_exchanged(const Tiles &tiles, int64_t m, int64_t n) {
    const auto lanes = [&](int64_t rows, int64_t columns) {
        return rows * groups(columns, tiles.vector) * tiles.vector;
    };
    return lanes(n, m) < lanes(m, n);
}

Call arranged(const cbfloat_product &product, const Plan &plan, const cbfloat_tables *a, const cbfloat_tables *b,
              bool may_exchange) {
    const bool values_of_a = plan.has_values(CBFLOAT_CODES_OF_A), values_of_b = plan.has_values(CBFLOAT_CODES_OF_B);
    Call call{plan,
              product.batches,
              product.m,
              product.n,
              product.k,
              product.chunk,
              {product.a, values_of_a, a},
              {product.b, values_of_b, b, values_of_b && plan.has(CBFLOAT_B_IS_ROUNDED)},
              {product.initial, plan.has(CBFLOAT_VALUES)},
              nullptr,
              product.n,
              1,
              0};
    call.result = static_cast<char *>(product.result);
    call.result_bytes = plan.has_values(CBFLOAT_CODES_OF_RESULT) ? 4 : plan.result.code_bytes();
    call.b.transpose();
    if (plan.dot) {
        call.a.transpose();
    } else if (may_exchange && better_exchanged(*plan.tiles, call.m, call.n)) {
        std::swap(call.a, call.b);
        std::swap(call.m, call.n);
        call.initial.transpose();
        std::swap(call.result_row, call.result_column);
    }
    return call;
}

// How the results of a call are cut: into regions of bounded size, and so that the threads get equal shares.
struct Cut {
    Cut(const Call &call, int threads, bool counts)
        : row_panels(groups(call.m, call.plan.tiles->rows)), column_panels(groups(call.n, call.plan.tiles->columns)) {
        down = groups(call.m, counts ? COUNTED_ROWS : REGION_ROWS);
        across = groups(call.n, counts ? COUNTED_COLUMNS : REGION_COLUMNS);
        while (threads > 1 && uneven(call.batches * down * across, threads)) {
            const bool rows_longer = call.m * across >= call.n * down;
            if (rows_longer ? down < row_panels : across >= column_panels && down < row_panels)
                down++;
            else if (across < column_panels)
                across++;
            else
                break;
        }
    }

    static bool uneven(int64_t pieces, int64_t threads) { return pieces * 10 < groups(pieces, threads) * threads * 9; }

    int64_t row_panels, column_panels, down, across;
};

int64_t edge(int64_t part, int64_t parts, int64_t panels, int64_t size, int64_t end) {
    return std::min(part * panels / parts * size, end);
}

}  // namespace
