// The loops of one path, over vectors of doubles: they hold every product, every cut term and their sums exactly.
// Whoever includes this has named its vectors' size, VECTOR_BYTES, and the functions all (not `V{} + value`, which has no
// -0), truncated, floored and to_float, and has included <cmath> before it names a processor. Without VECTOR_BYTES, V is
// one double and Bits are its bits, and there is the rule alone.
#include "accumulate.h"
#include "generic_bits.h"
#include "kernels.h"

namespace {

#if defined(VECTOR_BYTES)
constexpr int UNROLLED = 4, WIDTH = VECTOR_BYTES / 8, LANES = UNROLLED * WIDTH;

using Bits __attribute__((vector_size(VECTOR_BYTES))) = long long;
using Unaligned __attribute__((vector_size(VECTOR_BYTES), aligned(8), may_alias)) = double;

inline Bits bits_of(V value) { return (Bits)value; }
inline V with_bits(Bits bits) { return (V)bits; }

#define EACH _Pragma("GCC unroll 4") for (int u = 0; u < UNROLLED; u++)
#else
constexpr int UNROLLED = 1;

#define EACH for (int u = 0; u < UNROLLED; u++)
#endif

constexpr int FLOAT_EMIN = -126;
constexpr double SMALLEST = 0x1p-126, BEYOND = 0x1p128, SHIFTER = 0x1p52;
constexpr long long SIGN = -0x7FFFFFFFFFFFFFFF - 1;
constexpr double LEAST_EXPONENT = -900;  // below that of every product; scales stay normal numbers
constexpr double LARGEST_EXPONENT = 1000;  // that of an infinity is larger; likewise

inline V magnitude(V value) { return with_bits(bits_of(value) & ~SIGN); }
inline V choose(Bits mask, V yes, V no) { return with_bits((bits_of(yes) & mask) | (bits_of(no) & ~mask)); }
inline V largest(V a, V b) { return choose(a > b, a, b); }
inline V zero_of(V value) { return with_bits(bits_of(value) & SIGN); }
inline V infinity_of(V value) { return with_bits((bits_of(value) & SIGN) | 0x7FF0000000000000); }

// 2 to a whole power from -1022 to 1023.
inline V power(V exponent) { return with_bits(bits_of(exponent + (SHIFTER + 1023)) << 52); }

// Exponents of values of a format, float32 unless told, that of a zero or subnormal one the smallest.
inline V exponent_of(V value, int emin = FLOAT_EMIN) {
    const Bits field = bits_of(value) >> 52 & 0x7FF;
    return largest(with_bits(field | bits_of(all(SHIFTER))) - (SHIFTER + 1023), all(emin));
}

inline V odd(V quotient) {
    const V even = truncated(quotient * 0.5) * 2;
    const V one = with_bits((bits_of(quotient) & SIGN) | bits_of(all(1)));
    return choose(quotient == even, even, even + one);
}

inline V cut(V quotient, int how) {
    if (how == CBFLOAT_DOWN) return floored(quotient);
    return how == CBFLOAT_TO_ODD ? odd(quotient) : truncated(quotient);
}

// a + b rounded to odd, so that a second rounding to fewer bits finds what one would.
inline V sum_to_odd(V a, V b) {
    const V sum = a + b, of_b = sum - a, lost = (a - (sum - of_b)) + (b - of_b);
    const Bits inexact = magnitude(lost) > 0;  // false for a NaN
    const Bits back = ((lost < 0) ^ (sum < 0)) & inexact;
    return with_bits((bits_of(sum) + back) | (inexact & 1));
}

inline V limited(V result, V beyond) { return choose(magnitude(result) >= beyond, infinity_of(result), result); }

inline V normal_to_odd(V exact, int bits) {
    const long long step = 1ll << (52 - bits), rest = step - 1;
    const Bits low = bits_of(exact) & rest;
    return with_bits((bits_of(exact) & ~rest) | ((low + rest) & step));  // carries where a bit is lost
}

// To nearest even in a format of at most 51 fraction bits: a double's last place at 2^52 units is one unit.
inline V nearest(V exact, const FusedSum &sum) {
    const V exponent = exponent_of(exact, sum.result_emin);
    const V count = magnitude(exact) * power(sum.result_bits - exponent) + SHIFTER - SHIFTER;
    const V result = with_bits(bits_of(count) | (bits_of(exact) & SIGN)) * power(exponent - sum.result_bits);
    return sum.fraction_bits < 0 ? result : result + 0.0;  // a negative sum of cut terms that is lost is +0
}

inline V rounded(V exact, const FusedSum &sum) {
    const int emin = sum.result_emin;
    if (sum.rounding == CBFLOAT_NEAREST_EVEN && emin == FLOAT_EMIN) return to_float(exact);
    const V beyond = power(all(2 - emin));
    if (sum.rounding == CBFLOAT_NEAREST_EVEN) return limited(nearest(exact, sum), beyond);
    const long long rest = (1ll << (52 - sum.result_bits)) - 1;
    const V scaled = exact * power(all(sum.result_bits - emin)), back = power(all(emin - sum.result_bits));
    const Bits small = magnitude(exact) < power(all(emin));
    if (sum.rounding == CBFLOAT_TO_ODD)
        return limited(choose(small, odd(scaled) * back, normal_to_odd(exact, sum.result_bits)), beyond);
    // `+ 0.0`: a negative sum that is lost is +0.
    return limited(choose(small, truncated(scaled) * back + 0.0, with_bits(bits_of(exact) & ~rest)), beyond);
}

// Where results are flushed, they have the exponents of float32.
inline V finished(V exact, const FusedSum &sum, Flush flush) {
    if (flush == Flush::none) return rounded(exact, sum);
    if (sum.rounding == CBFLOAT_TO_ODD)  // which leaves small results small
        return limited(choose(magnitude(exact) < SMALLEST, zero_of(exact), normal_to_odd(exact, sum.result_bits)), all(BEYOND));
    const V result = rounded(exact, sum);
    // With a sign, what is tiny is told with an unbounded exponent: the limit is where rounding reaches the smallest.
    if (flush == Flush::with_sign && sum.rounding == CBFLOAT_NEAREST_EVEN)
        return choose(magnitude(exact) < SMALLEST - 0x1p-151, zero_of(result), result);
    return choose(magnitude(result) < SMALLEST, zero_of(result), result);
}

struct Lanes {
    V v[UNROLLED];
};

struct Terms {
    Lanes value[MOST_PRODUCTS + 1], exponent[MOST_PRODUCTS + 1];
};

// Of float32 values and of a product and a float32 value, doubles are added well enough to be rounded to nearest again;
// of two products, of a term with more bits than a float has, and to round to odd, the sum has to tell what it lost.
inline V added(V a, V b, const FusedSum &sum, bool wide) {
    return wide || sum.rounding != CBFLOAT_NEAREST_EVEN ? sum_to_odd(a, b) : a + b;
}

class Block {
public:
    Block(const AccumulatorRule &rule) : rule_(rule) {}

    Terms terms;

    void join(Lanes &total) {
        Lanes natural;
        if (rule_.products_overflow) natural = overflow(total);
        int count = rule_.block;
        bool wide = !rule_.products_are_floats;
        for (int number = 0; number < rule_.stages; number++) {
            count = stage(rule_.stage[number], count, number == 0, wide);
            wide = rule_.stage[number].rounding < 0;
        }
        if (rule_.join.chain) {
            for (int i = 0; i < count; i++) add(terms.value[i], rule_.join, wide, total);
        } else {
            terms.value[count] = total;
            if (rule_.join.fraction_bits >= 0) EACH {
                    const V of_zero = all(rule_.zero_total_exponent);
                    const V of_total = exponent_of(total.v[u], rule_.join.result_emin);
                    terms.exponent[count].v[u] = choose(total.v[u] == 0, of_zero, of_total);
                }
            total = sum(rule_.join, 0, 1, wide, count).value;
        }
        if (rule_.products_overflow)
            EACH total.v[u] = choose((natural.v[u] - natural.v[u]) == 0, total.v[u], natural.v[u]);
    }

private:
    struct Made {
        Lanes value, exponent;
    };

    // Finite products too large for float32 become infinite; return the sum without that.
    Lanes overflow(const Lanes &total) {
        Lanes natural = total;
        for (int i = 0; i < rule_.block; i++) EACH {
                V &value = terms.value[i].v[u];
                natural.v[u] += value;
                value = choose(magnitude(value) >= BEYOND, infinity_of(value), value);
            }
        return natural;
    }

    void add(const Lanes &term, const FusedSum &spec, bool wide, Lanes &total) const {
        EACH total.v[u] = finished(added(term.v[u], total.v[u], spec, wide), spec, rule_.flush);
    }

    // `wide`: a term may have more bits than a float has.
    int stage(const FusedSum &spec, int count, bool first, bool wide) {
        const int sums = count / spec.terms;
        Made made[MOST_PRODUCTS];
        for (int i = 0; i < sums; i++) {
            const int start = spec.interleaved ? i : i * spec.terms, step = spec.interleaved ? sums : 1;
            if (spec.chain) {
                Lanes total{};
                for (int j = 0; j < spec.terms; j++) add(terms.value[start + j * step], spec, wide, total);
                made[i].value = total;
                if (rule_.aligns) EACH made[i].exponent.v[u] = exponent_of(total.v[u]);
            } else {
                made[i] = sum(spec, start, step, first || wide, -1);
            }
        }
        for (int i = 0; i < sums; i++) {
            terms.value[i] = made[i].value;
            terms.exponent[i] = made[i].exponent;
        }
        return sums;
    }

    // The sum of the terms from `start` on; `total` is the number of the one that is the total, or -1.
    Made sum(const FusedSum &spec, int start, int step, bool wide, int total) const {
        Made made;
        if (spec.fraction_bits < 0) {
            const Lanes &a = terms.value[start];
            made.value = a;
            if (spec.terms == 2) {
                const Lanes &b = terms.value[start + step];
                EACH made.value.v[u] = added(a.v[u], b.v[u], spec, wide);
            }
        } else {
            align(spec, start, step, total, made);
        }
        if (spec.rounding >= 0) {
            EACH made.value.v[u] = finished(made.value.v[u], spec, rule_.flush);
            if (total < 0 && rule_.aligns) EACH made.exponent.v[u] = exponent_of(made.value.v[u]);
        }
        return made;
    }

    void align(const FusedSum &spec, int start, int step, int total, Made &made) const {
        Lanes exponent, scale, sum{};
        EACH exponent.v[u] = all(LEAST_EXPONENT);
        for (int j = 0; j < spec.terms; j++) EACH {
                exponent.v[u] = largest(exponent.v[u], terms.exponent[start + j * step].v[u]);
            }
        EACH exponent.v[u] = choose(exponent.v[u] > LARGEST_EXPONENT, all(LARGEST_EXPONENT), exponent.v[u]);
        EACH scale.v[u] = power(spec.fraction_bits - exponent.v[u]);
        const int others = total < 0 ? spec.terms : spec.terms - 1;
        for (int j = 0; j < others; j++) EACH {
                sum.v[u] += cut(terms.value[start + j * step].v[u] * scale.v[u], spec.cut);
            }
        EACH sum.v[u] *= power(exponent.v[u] - spec.fraction_bits);
        if (total >= 0) {
            const int kept = rule_.total_bits < 0 ? spec.fraction_bits : rule_.total_bits;
            EACH {
                V value = terms.value[total].v[u];
                if (rule_.total_reach >= 0) {
                    const Bits far = terms.exponent[total].v[u] < exponent.v[u] - rule_.total_reach;
                    value = choose(far, zero_of(value), value);
                }
                value = cut(value * power(kept - exponent.v[u]), spec.cut);
                sum.v[u] += value * power(exponent.v[u] - kept);
            }
        }
        made.value = sum;
        made.exponent = exponent;
    }

    const AccumulatorRule &rule_;
};

inline V flushed(V total, Flush flush) {
    return choose(magnitude(total) < SMALLEST, flush == Flush::positive ? V{} : zero_of(total), total);
}

// A factor as it is multiplied, and its exponent; `smallest` is the smallest normal value of the operands.
inline double factor_of(const AccumulatorRule &rule, double smallest, float given, double &exponent) {
    const uint32_t bits = ::bits_of(given);
    const int field = static_cast<int>(bits >> 23 & 0xFF) - 127;
    double value = given;
    if (rule.flush != Flush::none && std::fabs(value) < smallest)
        value = rule.flush == Flush::positive ? 0.0 : std::copysign(0.0, value);
    exponent = value == 0 ? rule.zero_exponent : field < rule.operand_emin ? rule.operand_emin : field;
    return value;
}

// Add products k0 to k1 (whole blocks) to the totals; `outer` holds what was promoted. `factors` makes the value of a
// product and, where exponents are needed, its exponent.
template <class Factors>
inline void add_products(const AccumulatorRule &rule, int64_t k0, int64_t k1, const Factors &factors, Lanes &totals,
                         Lanes &outer) {
    Block block(rule);
    Lanes total = totals, promoted = outer;  // in registers
    for (int64_t k = k0; k < k1; k += rule.block) {
        if (rule.promote && k % rule.promote == 0 && k) {
            EACH promoted.v[u] = to_float(promoted.v[u] + total.v[u]);
            total = Lanes{};
        }
        const int64_t since = rule.promote ? k % rule.promote : k;  // instructions begin anew after a promotion
        if (rule.flush != Flush::none && since % rule.depth == 0) EACH total.v[u] = flushed(total.v[u], rule.flush);
        for (int j = 0; j < rule.block; j++) {
            const int at = rule.ordered ? rule.order[j] : j;
            factors.multiply(rule, k - k0 + at, block.terms.value[j], block.terms.exponent[j]);
        }
        block.join(total);
    }
    totals = total;
    outer = promoted;
}

#if defined(VECTOR_BYTES)

inline Lanes loaded(const double *from) {
    Lanes lanes;
    EACH lanes.v[u] = *reinterpret_cast<const Unaligned *>(from + u * WIDTH);
    return lanes;
}

inline Lanes operand(const double *from, int64_t stride) {
    if (stride > 1) return loaded(from);
    Lanes lanes;
    EACH lanes.v[u] = all(*from);
    return lanes;
}

struct PackedFactors {
    void multiply(const AccumulatorRule &rule, int64_t at, Lanes &value, Lanes &exponent) const {
        const Lanes x = operand(a.values + at * a.stride, a.stride), y = loaded(b.values + at * LANES);
        EACH value.v[u] = x.v[u] * y.v[u];
        if (!rule.aligns) return;
        const Lanes of_x = operand(a.exponents + at * a.stride, a.stride), of_y = loaded(b.exponents + at * LANES);
        EACH exponent.v[u] = of_x.v[u] + of_y.v[u];
    }
    const PackedOperand a, b;
};

void run(const AccumulatorRule &rule, int64_t k0, int64_t k1, const PackedOperand &a, const PackedOperand &b,
         double *totals, double *outer) {
    Lanes total = loaded(totals), promoted = loaded(outer);
    add_products(rule, k0, k1, PackedFactors{a, b}, total, promoted);
    EACH *reinterpret_cast<Unaligned *>(totals + u * WIDTH) = total.v[u];
    EACH *reinterpret_cast<Unaligned *>(outer + u * WIDTH) = promoted.v[u];
}

void pack(const AccumulatorRule &rule, int64_t count, const float *from, int64_t stride, double *values,
          double *exponents) {
    const double smallest = power_of_two(rule.operand_emin);
    for (int64_t i = 0; i < count; i++) {
        double exponent;
        values[i] = factor_of(rule, smallest, from[i * stride], exponent);
        exponents[i] = exponent;
    }
}

const AccumulatingPath PATH = {LANES, pack, run};
#endif

#undef EACH

}  // namespace
