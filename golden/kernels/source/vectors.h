// The loops of the vector paths, written once over the class `Lanes` that the including path defines before this point.
#pragma once

#include "chains.h"
#include "generic_counts.h"
#include "steps.h"

namespace {

template <class Step, Rounding ROUNDING>
const Tiles *tiles() {
    static const Tiles tiles = tiles_of<Step>(ROUNDING, join<Step>);
    return &tiles;
}

// --- flat arrays: whole vectors, then the rest through a vector on the stack ---

template <class In, class Out, class Convert>
inline void each_vector(int64_t count, const In *in, Out *out, const Convert &convert) {
    int64_t i = 0;
    for (; i + Lanes::COUNT <= count; i += Lanes::COUNT) convert(in + i, out + i);
    if (i == count) return;
    In given[Lanes::COUNT] = {};
    Out result[Lanes::COUNT];
    std::memcpy(given, in + i, static_cast<size_t>(count - i) * sizeof(In));
    convert(given, result);
    std::memcpy(out + i, result, static_cast<size_t>(count - i) * sizeof(Out));
}

// Values of one kind of source, scaled and rounded to odd.
struct ScaleFloat {
    using Value = float;
    explicit ScaleFloat(const Format &format)
        : factor(Lanes::floats(static_cast<float>(power_of_two(format.scale())))) {}
    Words operator()(const float *values) const { return Lanes::multiply_to_odd(Lanes::load(values), factor); }
    Floats factor;
};

struct ScaleDouble {
    using Value = double;
    explicit ScaleDouble(const Format &format) : factor(power_of_two(format.scale())) {}
    Words operator()(const double *values) const { return Lanes::doubles_to_odd(values, factor); }
    double factor;
};

template <class Code>
inline void store_words(Code *codes, Words words) {
    if constexpr (sizeof(Code) == 2)
        Lanes::store_halves(codes, words);
    else
        Lanes::store_words(codes, words);
}

template <class Code>
inline Words load_words(const Code *codes) {
    if constexpr (sizeof(Code) == 2)
        return Lanes::load_halves(codes);
    else
        return Lanes::load_words(codes);
}

template <class Scale, class Code>
void encode_into(const Format &format, int64_t count, const typename Scale::Value *values, Code *codes) {
    const LastPlace place(format);
    const Scale scaled(format);
    const Words shift = Lanes::words(static_cast<uint32_t>(FLOAT_FRACTION - format.fraction_bits));
    const Words sign_shift = Lanes::words(static_cast<uint32_t>(32 - format.width()));
    const Words inf = Lanes::words(format.inf()), nan = Lanes::words(format.nan());
    each_vector(count, values, codes, [&](const typename Scale::Value *from, Code *to) {
        const Words exact = scaled(from), rounded = place.round(exact);
        const Words magnitude = Lanes::shift_right(Lanes::both(rounded, Lanes::words(~SIGN)), shift);
        const Words sign = Lanes::shift_right(Lanes::both(rounded, Lanes::words(SIGN)), sign_shift);
        // Whatever is beyond the largest finite code, float's infinity included, is infinity.
        const Words code = Lanes::either(Lanes::smaller(magnitude, inf), sign);
        store_words(to, Lanes::where_nan(Lanes::as_floats(exact), nan, code));
    });
}

template <class Scale>
void encode(const Format &format, int64_t count, const typename Scale::Value *values, void *codes) {
    if (format.code_bytes() == 2)
        encode_into<Scale>(format, count, values, static_cast<uint16_t *>(codes));
    else
        encode_into<Scale>(format, count, values, static_cast<uint32_t *>(codes));
}

template <class Scale>
void quantize(const Format &format, int64_t count, const typename Scale::Value *values, float *rounded, int exponent) {
    const LastPlace place(format);
    const Scale scaled(format);
    const Floats limit = Lanes::floats(float_of(format.inf() << (FLOAT_FRACTION - format.fraction_bits)));
    const Floats factor = Lanes::floats(static_cast<float>(power_of_two(exponent - format.scale())));
    const Words nan = Lanes::words(FLOAT_NAN);
    each_vector(count, values, rounded, [&](const typename Scale::Value *from, float *to) {
        const Floats exact = Lanes::as_floats(scaled(from));
        const Floats nearest = Lanes::infinite_from(Lanes::as_floats(place.round(Lanes::as_words(exact))), limit);
        const Words value = Lanes::as_words(Lanes::multiply(nearest, factor));
        Lanes::store(to, Lanes::as_floats(Lanes::where_nan(exact, nan, value)));
    });
}

template <class Code>
void decode_from(const Format &format, int64_t count, const Code *codes, float *values, int exponent) {
    const Words shift = Lanes::words(static_cast<uint32_t>(FLOAT_FRACTION - format.fraction_bits));
    const Words sign_shift = Lanes::words(static_cast<uint32_t>(32 - format.width()));
    const Words magnitude_bits = Lanes::words((1u << (format.width() - 1)) - 1);
    const Words inf = Lanes::words(format.inf());
    const Floats factor = Lanes::floats(static_cast<float>(power_of_two(exponent - format.scale())));
    each_vector(count, codes, values, [&](const Code *from, float *to) {
        const Words code = load_words(from);
        const Words magnitude = Lanes::both(code, magnitude_bits);
        const Words sign = Lanes::both(Lanes::shift_left(code, sign_shift), Lanes::words(SIGN));
        const Words finite =
            Lanes::as_words(Lanes::multiply(Lanes::as_floats(Lanes::shift_left(magnitude, shift)), factor));
        Words value = Lanes::either(Lanes::where_equal(magnitude, inf, Lanes::words(INFINITY_BITS), finite), sign);
        value = Lanes::where_greater(magnitude, inf, Lanes::words(FLOAT_NAN), value);
        Lanes::store(to, Lanes::as_floats(value));
    });
}

// --- float itself ---

void canonical_floats(int64_t count, const float *values, float *to, int exponent) {
    const Floats factor = Lanes::floats(static_cast<float>(power_of_two(exponent)));
    each_vector(count, values, to, [&](const float *from, float *into) {
        const Floats x = Lanes::load(from);
        const Words value = Lanes::as_words(Lanes::multiply(x, factor));
        Lanes::store(into, Lanes::as_floats(Lanes::where_nan(x, Lanes::words(FLOAT_NAN), value)));
    });
}

// --- what the table holds ---

void encode_floats(const Format &format, int64_t count, const float *values, void *codes) {
    if (format.is_float())
        canonical_floats(count, values, static_cast<float *>(codes), 0);
    else
        encode<ScaleFloat>(format, count, values, codes);
}

void encode_doubles(const Format &format, int64_t count, const double *values, void *codes) {
    if (format.is_float())
        generic_encode(format, count, values, codes);
    else
        encode<ScaleDouble>(format, count, values, codes);
}

void quantize_floats(const Format &format, int64_t count, const float *values, float *rounded, int exponent) {
    if (format.is_float())
        canonical_floats(count, values, rounded, exponent);
    else
        quantize<ScaleFloat>(format, count, values, rounded, exponent);
}

void quantize_doubles(const Format &format, int64_t count, const double *values, float *rounded) {
    if (format.is_float())
        generic_quantize_double(format, count, values, rounded);
    else
        quantize<ScaleDouble>(format, count, values, rounded, 0);
}

void decode_codes(const Format &format, int64_t count, const void *codes, float *values, int exponent) {
    if (format.is_float())
        canonical_floats(count, static_cast<const float *>(codes), values, exponent);
    else if (format.code_bytes() == 2)
        decode_from(format, count, static_cast<const uint16_t *>(codes), values, exponent);
    else
        decode_from(format, count, static_cast<const uint32_t *>(codes), values, exponent);
}

// Integer order is that of magnitudes, so that NaN counts as more than infinity.
float largest_magnitude(int64_t count, const float *values) {
    Words largest = Lanes::words(0);
    const auto join_vector = [&](const float *from) {
        largest = Lanes::larger(largest, Lanes::both(Lanes::as_words(Lanes::load(from)), Lanes::words(~SIGN)));
    };
    int64_t i = 0;
    for (; i + Lanes::COUNT <= count; i += Lanes::COUNT) join_vector(values + i);
    float lanes[Lanes::COUNT];
    Lanes::store(lanes, Lanes::as_floats(largest));
    const float rest = generic_largest(count - i, values + i), whole = generic_largest(Lanes::COUNT, lanes);
    return rest > whole ? rest : whole;
}

float smallest_magnitude(int64_t count, const float *values) {
    const Words less = Lanes::words(0xFFFFFFFF);  // by 1, so that a 0 is the largest
    Words smallest = Lanes::words(INFINITY_BITS - 1);
    int64_t i = 0;
    for (; i + Lanes::COUNT <= count; i += Lanes::COUNT) {
        const Words magnitude = Lanes::both(Lanes::as_words(Lanes::load(values + i)), Lanes::words(~SIGN));
        smallest = Lanes::smaller(smallest, Lanes::add(magnitude, less));
    }
    uint32_t lanes[Lanes::COUNT];
    Lanes::store_words(lanes, smallest);
    float found = generic_smallest(count - i, values + i);
    for (const uint32_t lane : lanes) found = float_of(lane + 1) < found ? float_of(lane + 1) : found;
    return found;
}

template <int VECTORS>
inline void slide_vectors(int64_t steps, const float *factors, const float *const *rows, float start, int64_t i,
                          float *sums) {
    Floats sum[VECTORS];
#pragma GCC unroll 8
    for (int v = 0; v < VECTORS; v++) sum[v] = Lanes::floats(start);
    for (int64_t k = 0; k < steps; k++) {
        const Floats factor = Lanes::floats(factors[k]);
#pragma GCC unroll 8
        for (int v = 0; v < VECTORS; v++)
            sum[v] = Lanes::multiply_add(factor, Lanes::load(rows[k] + i + v * Lanes::COUNT), sum[v]);
    }
#pragma GCC unroll 8
    for (int v = 0; v < VECTORS; v++) Lanes::store(sums + i + v * Lanes::COUNT, sum[v]);
}

void slide(int64_t steps, const float *factors, const float *const *rows, float start, int64_t count, float *sums) {
    constexpr int AT_ONCE = 8;  // as many as hide how long a step takes
    int64_t i = 0;
    for (; i + AT_ONCE * Lanes::COUNT <= count; i += AT_ONCE * Lanes::COUNT)
        slide_vectors<AT_ONCE>(steps, factors, rows, start, i, sums);
    for (; i + 2 * Lanes::COUNT <= count; i += 2 * Lanes::COUNT) slide_vectors<2>(steps, factors, rows, start, i, sums);
    for (; i < count; i += Lanes::COUNT) slide_vectors<1>(steps, factors, rows, start, i, sums);
}

template <int ELEMENTS>
inline void correlate_some(int64_t steps, const float *factors, const float *const *rows, int64_t pitch, float *sums,
                           int64_t lane) {
    Floats sum[ELEMENTS];
#pragma GCC unroll 9
    for (int e = 0; e < ELEMENTS; e++) sum[e] = Lanes::load(sums + e * LANES + lane);
    for (int64_t k = 0; k < steps; k++) {
        const Floats factor = Lanes::load(factors + k * LANES + lane);
#pragma GCC unroll 9
        for (int e = 0; e < ELEMENTS; e++)
            sum[e] = Lanes::multiply_add(factor, Lanes::load(rows[e] + k * pitch + lane), sum[e]);
    }
#pragma GCC unroll 9
    for (int e = 0; e < ELEMENTS; e++) Lanes::store(sums + e * LANES + lane, sum[e]);
}

void correlate(int64_t steps, const float *factors, int64_t elements, const float *const *rows, int64_t pitch,
               float *sums) {
    for (int64_t lane = 0; lane < LANES; lane += Lanes::COUNT) {
        int64_t e = 0;
        for (; e + 9 <= elements; e += 9) correlate_some<9>(steps, factors, rows + e, pitch, sums + e * LANES, lane);
        for (; e + 3 <= elements; e += 3) correlate_some<3>(steps, factors, rows + e, pitch, sums + e * LANES, lane);
        for (; e < elements; e++) correlate_some<1>(steps, factors, rows + e, pitch, sums + e * LANES, lane);
    }
}

// --- subnormals flushed: a sum of a short format is 0 below the first magnitude that rounds to a normal value; the
// environment does so for floats ---

struct FlushedStep : LimitedStep {
    explicit FlushedStep(const Rule &rule)
        : LimitedStep(rule),
          smallest(Lanes::floats(static_cast<float>(first_kept(rule.format) * power_of_two(rule.format.scale())))) {}
    Floats operator()(Floats a, Floats b, Floats acc) const {
        const Words x = Lanes::quieted(Lanes::multiply_add_to_odd(a, b, acc));
        return Lanes::zero_below(Lanes::as_floats(x), smallest, Lanes::infinite_from(Lanes::as_floats(place.round(x)), limit));
    }
    Floats smallest;
};

// The path; `TO_ODD` is the environment in which its instructions round to odd.
template <Rounding TO_ODD>
const Path *path_of_lanes() {
    static const Tiles *const single = tiles<SingleStep, Rounding::nearest>();
    static const Tiles *const flushed_single = tiles<SingleStep, Rounding::flushed>();
    static const Tiles *const flushed = tiles<FlushedStep, TO_ODD>();
    static const Arrays arrays = {TO_ODD,          encode_floats,    encode_doubles,
                                  quantize_floats, quantize_doubles, decode_codes};
    static const Path path = {&GENERIC_ARRAYS,
                              &arrays,
                              largest_magnitude,
                              smallest_magnitude,
                              slide,
                              correlate,
                              {{&GENERIC_TILES, single, single, tiles<ScaledStep, TO_ODD>(), tiles<LimitedStep, TO_ODD>(),
                                nullptr, nullptr}},
                              {&GENERIC_FLUSHED_TILES, flushed_single, flushed_single, flushed, flushed, nullptr, nullptr}};
    return &path;
}

}  // namespace
