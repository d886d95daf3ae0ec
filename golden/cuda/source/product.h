// What the kernels are told: plain structures that golden/cuda/plan.py fills. Strides and offsets count elements.
//
// A product runs in two kinds of kernels. `pack` brings an operand into panels, [matrix][panel][k][lane], of values rounded
// to the operands' format times 2^exponent; `multiply_TILE` runs the chains of a tile of results over two panels.
#pragma once

#include <cstdint>

constexpr int AXES = 4;    // of a batch, the last varies fastest; lengths of those not used are 1
constexpr int STAGE = 16;  // products that are copied into shared memory at once; panels hold whole stages

// How elements lie in memory.
enum class Memory : int32_t { float32, float16, bfloat16 };

// Which codes of a format are special (NUMERICS section 8).
enum class Specials : int32_t { ieee, fn, fnuz, finite };

// A format and the exponent by which its values are scaled.
struct Target {
    int32_t exponent_bits, fraction_bits, bias;
    Specials specials;
    int32_t exponent;
};

// Element (i, j) of a matrix of a batch: data[sum of the axes + rows[i] + columns[j]]; without tables i * row_stride and
// j * column_stride take their place.
struct Source {
    const void *data;
    const int64_t *rows, *columns;
    int64_t row_stride, column_stride;
    int64_t axes[AXES];
    Memory memory;
    int32_t padding;
};

// One operand. The rows of `source` are the lanes of the panels, its columns the products.
struct Packing {
    Source source;
    int64_t lengths[AXES];  // of the axes along which there are different matrices
    int64_t lanes, k;
    int64_t width, depth;  // lanes of a panel; k in whole stages
    void *panels;
    uint32_t *largest;  // [matrix][panel][stage]: bits of the largest magnitude; null: nobody asks
    Target target;
    int32_t halves;  // 1: panels of codes of two bytes instead of floats
};

struct Product {
    int64_t lengths[AXES];
    int64_t m, n, k, depth;
    int64_t chunk;  // at least 1
    int64_t row_tiles, column_tiles;
    const void *a, *b;  // panels
    const uint32_t *largest_a, *largest_b;
    int64_t a_axes[AXES], b_axes[AXES];  // strides between packed matrices, counted in matrices
    Source initial;                      // data is null where the totals start from +0
    void *result;
    int64_t result_row, result_column, result_axes[AXES];
    Memory result_memory;
    Target initial_target;  // to which initial values are rounded before they are to the outer format
    Target inner, outer;    // with the exponents of partial sums and totals
    Target destination;     // with exponent 0
    float inner_limit, outer_limit;  // the first scaled magnitude beyond the largest finite one
    float join_factor;               // 2^(outer.exponent - inner.exponent)
    // What a scaled partial sum may reach after `steps` products of at most `product` in magnitude, starting from `start`:
    // (start + steps * (product * product_factor + smallest)) * (1 + steps * growth). Below `safe` nothing overflows.
    float safe, product_factor, smallest, growth;
    int32_t mode, last_mode;
    // The random bits (NUMERICS section 10). The index of a result is that of the first and these strides.
    uint32_t key[2], call;
    int32_t random_bits;
    uint32_t first_index, batch_index, row_index;
};

// Contiguous values, rounded to a format in a mode, then stored as `result_memory` has them.
struct Elementwise {
    const void *values;
    void *result;
    int64_t count;
    Memory memory, result_memory;
    Target target;
    int32_t mode;
    uint32_t key[2], call;
    int32_t random_bits;
    uint32_t first_index, step;
};

// Rows of contiguous values, rounded to a format and then through the softmax of NUMERICS section 6. `exponentials` are
// floats: exp rounded to the format, of the values whose codes are those of 0, -smallest and so on to -infinity.
struct Softmax {
    const void *values;
    void *result;
    const float *exponentials;
    int64_t rows, length;
    Memory memory, result_memory;
    Target target;
    int32_t padding;
};

// Rows of contiguous values, rounded to blocks of `block` neighbours with one scale, the last of a row of as many as there
// are. The result lies in memory as the values do.
struct Blocks {
    const void *values;
    void *result;
    int64_t length, block;  // of a row
    int64_t blocks;         // of all rows
    Memory memory;
    Target target;    // of the elements
    int32_t emax;     // exponent of its largest value
    int32_t lanes;    // threads that have a block: a power of two, at most all
};
