/* The compiled kernels, as a plain C interface: golden calls it through ctypes, a C++ test bench may link it.
 *
 * Every function gives the bits that NUMERICS asks for, on every path and with any number of threads; the paths differ
 * in speed only. No function keeps state between calls, and all may be called from several threads at once. The
 * floating-point environment of the caller (rounding, flushing of subnormals) neither matters nor changes.
 */
#ifndef CBFLOAT_KERNELS_H
#define CBFLOAT_KERNELS_H

#include <stdint.h>

#if defined(__GNUC__)
#define CBFLOAT_API __attribute__((visibility("default")))
#else
#define CBFLOAT_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Version of this interface: whoever loads the library compares it. */
#define CBFLOAT_KERNELS_VERSION 5
CBFLOAT_API int cbfloat_kernels_version(void);

/* The rounding modes and the events of the library, in their order, each followed by a space: "nearest_even ... ; inexact
 * ... ". Whoever has tables of them compares. */
CBFLOAT_API const char *cbfloat_names(void);

enum cbfloat_path {
    CBFLOAT_PORTABLE = 0,
    CBFLOAT_AVX2 = 1,       /* AVX2, FMA and F16C */
    CBFLOAT_AVX512 = 2,     /* AVX-512 F, BW, DQ and VL */
    CBFLOAT_AVX512FP16 = 3, /* and AVX512-FP16 */
};

/* 1 if this processor runs the path and the library contains it, else 0. The functions below take such paths only. */
CBFLOAT_API int cbfloat_path_available(int path);

/* A format in one number, from its exponent bits, fraction bits and bias. */
#define CBFLOAT_FORMAT(exponent_bits, fraction_bits, bias) \
    ((int64_t)(exponent_bits) + 256 * (int64_t)(fraction_bits) + 65536 * (int64_t)(bias))

/* Codes are uint16_t for formats of up to 16 bits and uint32_t above; values are float unless `value_bits` is 64. */
CBFLOAT_API void cbfloat_encode(int path, int threads, int64_t format, int64_t count, const void *values,
                                int value_bits, void *codes);
CBFLOAT_API void cbfloat_decode(int path, int threads, int64_t format, int64_t count, const void *codes, float *values);
CBFLOAT_API void cbfloat_quantize(int path, int threads, int64_t format, int64_t count, const void *values,
                                  int value_bits, float *rounded);
CBFLOAT_API void cbfloat_convert(int path, int threads, int64_t source, int64_t destination, int64_t count,
                                 const void *codes, void *converted);

/* An operand or the initial value: element (i, j) of batch t is data[offsets[t] + i * row_stride + j * column_stride].
 * Strides and offsets count elements and may be 0 or negative; without `offsets`, every batch is the same matrix. */
struct cbfloat_matrix {
    const void *data; /* null: no initial value, the totals start from +0 */
    int64_t row_stride, column_stride;
    const int64_t *offsets;
};

enum cbfloat_product_mode {
    CBFLOAT_MATMUL = 0, /* (M, K) by (K, N): result (M, N) */
    CBFLOAT_DOT = 1,    /* M is 1, a is (K, N) as b is: result[n] = sum over k of a[k, n] * b[k, n] */
};

/* What the arrays of a product hold: a sum of these. */
enum cbfloat_contents {
    CBFLOAT_VALUES = 1,         /* a, b, initial and result are floats, rounded as they are read; without it codes */
    CBFLOAT_CODES_OF_A = 2,     /* a holds codes beside it; so b and the result with the next two */
    CBFLOAT_CODES_OF_B = 4,
    CBFLOAT_CODES_OF_RESULT = 8,
    CBFLOAT_INITIAL_ROUNDED = 16, /* initial values are rounded to result_format before anything else */
    CBFLOAT_B_IS_ROUNDED = 32,    /* the values of b are of the operand format already, NaNs the canonical one */
    CBFLOAT_FLUSHED = 64,         /* subnormals are flushed, NUMERICS section 12: to nearest even, without counts */
};

/* One call's products, NUMERICS section 5. All fields are 8 bytes long. */
struct cbfloat_product {
    int64_t path, threads;
    int64_t mode;
    int64_t contents; /* cbfloat_contents */
    int64_t operand, inner, outer, result_format;
    int64_t chunk; /* 0: one chunk of any length; -1: no chunks, the total is itself the chain of steps, for which
                      inner and outer are one format (as level 0 has it, in any format) */
    int64_t batches, m, n, k; /* k at least 1 */
    struct cbfloat_matrix a, b, initial;
    void *result; /* batches x M x N, contiguous */
};

/* 0 when done, 1 when memory ran out (the result is then undefined). */
CBFLOAT_API int cbfloat_multiply(const struct cbfloat_product *product);

/* Where the elements of an operand lie that no strides describe, such as the windows of a convolution: element (i, j) of
 * batch t is data[offsets[t] + rows[i] + columns[j]], and the strides are not read. */
struct cbfloat_tables {
    const int64_t *rows, *columns;
};

/* As cbfloat_multiply, the operands by tables; null tables leave an operand its strides. */
CBFLOAT_API int cbfloat_multiply_indexed(const struct cbfloat_product *product, const struct cbfloat_tables *a,
                                         const struct cbfloat_tables *b);

enum cbfloat_mode {
    CBFLOAT_NEAREST_EVEN = 0,
    CBFLOAT_TOWARD_ZERO = 1,
    CBFLOAT_DOWN = 2,
    CBFLOAT_UP = 3,
    CBFLOAT_NEAREST_AWAY = 4,
    CBFLOAT_TO_ODD = 5,
    CBFLOAT_STOCHASTIC = 6,
};

/* How a product is rounded, NUMERICS sections 9 and 10. All fields are 8 bytes long. */
struct cbfloat_rounding {
    int64_t steps; /* mode of the steps and promotions */
    int64_t last;  /* mode of the conversion into result_format */
    uint64_t seed; /* where a mode is stochastic; so the others */
    int64_t call;
    int64_t random_bits; /* R, at most 32, and at most 51 less the fraction bits of each format that is rounded into */
};

/* As cbfloat_multiply_indexed, in other modes; null is to nearest even; 2 where a mode is none of cbfloat_mode, or not the
 * only one that flushes. With random bits a call has at most 2^32 results and k is at most 2^31. */
CBFLOAT_API int cbfloat_multiply_rounded(const struct cbfloat_product *product, const struct cbfloat_tables *a,
                                         const struct cbfloat_tables *b, const struct cbfloat_rounding *rounding);

enum cbfloat_count_form {
    CBFLOAT_COUNT_EACH = 0, /* per result: batches x M x N */
    CBFLOAT_COUNT_ROWS = 1, /* per row of a: batches x M */
    CBFLOAT_COUNT_SUM = 2,  /* one for all */
};

/* What is counted, NUMERICS section 11. All fields are 8 bytes long. */
struct cbfloat_counting {
    int64_t form;
    const uint8_t *rows; /* M of them: 0 where a row of a is not counted; null: all are */
    /* An array of the form's shape for each event of cbfloat_names, of products; then as many of promotions. What is found
     * is added to what they hold. */
    int64_t *events;
    int64_t *largest_exponents; /* one array; what is larger than what it holds replaces that */
};

/* As cbfloat_multiply_rounded, and count. No factor and no initial value counts as a signalling NaN. */
CBFLOAT_API int cbfloat_multiply_counted(const struct cbfloat_product *product, const struct cbfloat_tables *a,
                                         const struct cbfloat_tables *b, const struct cbfloat_rounding *rounding,
                                         const struct cbfloat_counting *counting);

/* One sum of an accumulator's rule (golden.FusedSum). All fields are 8 bytes long. */
struct cbfloat_fused_sum {
    int64_t terms;
    int64_t fraction_bits; /* -1: terms are not cut */
    int64_t cut;           /* cbfloat_mode */
    int64_t rounding;      /* cbfloat_mode; -1: not rounded */
    int64_t result_bits, result_emin; /* fraction bits and smallest normal exponent of what it is rounded to */
    int64_t chain, interleaved; /* 0 or 1 */
};

/* How another machine accumulates (golden.Accumulator). All fields are 8 bytes long. */
struct cbfloat_accumulator {
    int64_t block, stages; /* at most 64 products and 8 stages */
    struct cbfloat_fused_sum sums[8], join;
    const int64_t *order;            /* null: as they come */
    int64_t total_bits, total_reach; /* -1: as the other terms; no limit */
    int64_t zero_exponent;           /* below -10000: a product that is 0 takes no part in the alignment */
    int64_t zero_total_exponent;
    int64_t products_overflow;
    int64_t flush; /* 0: none, 1: to zeros of the sign, 2: to +0 */
    int64_t depth; /* products between flushes of the total, a multiple of the block */
    int64_t promote; /* products between promotions; 0: none */
    int64_t operand_emin, operand_bits; /* smallest normal exponent and fraction bits of the operands */
    int64_t nan; /* of float32 */
};

/* Products of float values of the operands' format. `result` holds the totals as floats, the initial ones and then the new
 * ones: batches x M x N, contiguous. In CBFLOAT_DOT, M is 1 and a is (K, N) as b is. All fields are 8 bytes long. */
struct cbfloat_accumulation {
    int64_t path, threads;
    int64_t mode;
    int64_t batches, m, n, k;
    struct cbfloat_matrix a, b;
    float *result;
    struct cbfloat_accumulator rule;
};

/* 0 when done, 1 when memory ran out (the result is then undefined), 2 where the library does not have it. */
CBFLOAT_API int cbfloat_accumulate(const struct cbfloat_accumulation *accumulation);

/* Windows of planes of up to three axes, each plane with a kernel of its own: plane p with kernel p % kernels. Windows
 * begin at `step` times the position, less `before`; the elements of a kernel are `gap` apart. Outside of a plane are
 * zeros. All arrays are contiguous, all fields are 8 bytes long. */
struct cbfloat_windows {
    int64_t path, threads;
    int64_t planes, kernels;
    int64_t operand, result_format;
    int64_t input[3], length[3], step[3], gap[3], before[3], output[3];
    const float *values;  /* planes x input; rounded to the operand format as they are read */
    const float *weights; /* kernels x length, of the operand format */
    const float *initial; /* kernels; null: +0 */
    float *result;        /* planes x output */
};

/* A convolution at level 0: result = the chain of fp32 steps along each window, rounded once to result_format. 0 when
 * done, 1 when memory ran out (the result is then undefined). */
CBFLOAT_API int cbfloat_slide(const struct cbfloat_windows *windows);

/* Its transpose: the products of each value (a position) and each element of its kernel, at level 0, rounded to
 * result_format, are added in fp32 where they meet, in the order of the elements, from +0; the sums are not rounded.
 * Without weights, `values` are the products: planes x length x input. */
CBFLOAT_API int cbfloat_overlap(const struct cbfloat_windows *windows);

/* The gradient of the kernels of cbfloat_slide: result (kernels x length) = the chains of fp32 steps over the planes of a
 * kernel, in their order, and the positions in each, of `weights` (planes x output, rounded as they are read) and the
 * windows of `values`; rounded once. `initial` is not read. */
CBFLOAT_API int cbfloat_correlate(const struct cbfloat_windows *windows);

#ifdef __cplusplus
}
#endif

#endif
