// How a product runs on a path: in which tiles, with which scales, how each number is rounded on its way.
#pragma once

#include <cmath>

#include "kernels.h"
#include "path.h"

struct Plan {
    // Without `rounding` to nearest even. `counts` asks for tiles that count.
    Plan(const cbfloat_product &product, const Path &path, const cbfloat_rounding *rounding, bool counts = false);

    const Path &path;
    Format operand, inner, outer, result;
    int64_t contents;  // cbfloat_contents
    bool is_chain;  // the total is the chain of steps, as at level 0
    bool dot;
    const Tiles *tiles;    // of the chains
    const Tiles *limited;  // in their place where an accumulator might overflow
    const Tiles *joining;  // whose `join` adds partial sums to totals
    Rule chain_rule, join_rule, last_rule;
    void (*convert)(int64_t count, float *values, const Rule &rule) = nullptr;  // the last, but to nearest even
    int a_exponent = 0, b_exponent = 0;  // the operands are packed as values times 2^exponent
    int total_exponent = 0;              // totals are values times 2^exponent
    float join_factor = 1;
    bool counts;
    bool flushes;  // subnormal operands, initial values and results
    double smallest_without_tiny = 0;
    bool halves = false;  // operands and partial sums are native float16

    bool has(cbfloat_contents content) const { return (contents & content) != 0; }
    // Whether an array is of floats, that holds codes beside values with `codes`.
    bool has_values(cbfloat_contents codes) const { return has(CBFLOAT_VALUES) && !has(codes); }

    // What a sum of `steps` products of at most `product` in magnitude can reach, starting from `start`. Rounding to
    // nearest moves it by no more than the product that has just joined, for the sum without that product is a value of
    // the format, too: every product counts twice. Other modes move it by less than an ulp, or than the smallest value.
    double bound(double start, int64_t steps, double product) const;
    // A sum becomes infinity from half an ulp above the largest finite value, which leaves room for the bound's own
    // rounding.
    bool may_overflow(double bound) const {
        return !(bound < std::ldexp(2 - std::ldexp(1.0, -inner.fraction_bits), inner.emax()));
    }

    // Whether a sum below the smallest normal value may be inexact: whether a product may have a digit below the lowest of
    // the inner format. `smallest` is the least that a product which is not 0 can be, as the operands are packed.
    bool may_be_tiny(double smallest) const { return smallest < smallest_without_tiny; }
    // Native float16 watches for itself.
    bool has_tiny_products() const { return !halves && 2 * operand.lowest_digit() < inner.lowest_digit(); }

private:
    const InMode &kinds() const { return flushes ? path.flushed : path.in(chain_rule.mode); }
    bool choose_scaled();
    bool counts_scaled() const;
    void choose_generic();
};
