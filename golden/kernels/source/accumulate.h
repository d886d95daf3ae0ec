// Accumulators of other machines: rules as data, and the loops of a path that follow them.
#pragma once

#include <cstdint>

// One fused sum: terms are aligned at the largest exponent and cut, added exactly, and rounded once.
struct FusedSum {
    int terms;
    int fraction_bits;  // below the largest exponent's bit; -1: not cut
    int cut;            // cbfloat_mode: toward_zero, down or to_odd
    int rounding;       // cbfloat_mode: nearest_even, toward_zero or to_odd; -1: the sum stays as it is
    int result_bits, result_emin;  // fraction bits and smallest normal exponent of what it is rounded to
    bool chain, interleaved;
};

enum class Flush { none, with_sign, positive };

constexpr int MOST_STAGES = 8, MOST_PRODUCTS = 64;

struct AccumulatorRule {
    int block, stages;
    FusedSum stage[MOST_STAGES], join;
    bool ordered;
    int order[MOST_PRODUCTS];
    int total_bits, total_reach;  // -1: as the other terms; no limit
    double zero_exponent, zero_total_exponent;
    bool products_overflow;
    Flush flush;
    int64_t depth, promote;  // promote 0: never
    int operand_emin;
    bool products_are_floats;  // a float's 24 bits hold the significand of every product
    bool aligns;               // some sum aligns its terms: exponents are needed
};

// Operands as the loops take them: values and exponents, `lanes` of each for every product, or one for all lanes.
struct PackedOperand {
    const double *values, *exponents;
    int64_t stride;
};

struct AccumulatingPath {
    int lanes;
    // Pack `count` floats, `stride` apart, as values and exponents.
    void (*pack)(const AccumulatorRule &rule, int64_t count, const float *from, int64_t stride, double *values,
                 double *exponents);
    // Add products k0 to k1 (whole blocks) to the totals of all lanes; `outer` holds what was promoted.
    void (*run)(const AccumulatorRule &rule, int64_t k0, int64_t k1, const PackedOperand &a, const PackedOperand &b,
                double *totals, double *outer);
};

const AccumulatingPath *accumulating_portable(), *accumulating_avx2(), *accumulating_avx512();
