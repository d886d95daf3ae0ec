// Steps in doubles: nearest away into floats, and stochastic into any format, over `WideLanes`.
//
// Scaled floats (plain ones for accumulators in float) are taken times 2^-896, so that their smallest normal value becomes
// that of double, 2^-1022: rounding to the format is rounding the bits of a double at one fixed place. The environment
// rounds the exact a * b + acc toward zero to 53 bits; what is added then at the places that are cut off carries where
// the magnitude goes up. Nothing below the 53 bits matters: a half, or a random number, has no bits there.
#pragma once

#include <cmath>

#include "generic_bits.h"
#include "philox.h"
#include "unroll.h"

namespace {

using Doubles = WideLanes::Doubles;
using Longs = WideLanes::Words;

constexpr int DOUBLE_FRACTION = 52, DOUBLE_SCALE = 896;

struct WideStep {
    using Element = float;
    using Vector = Doubles;
    static constexpr int COUNT = WideLanes::COUNT, VECTORS = WideLanes::VECTORS, ROWS = WideLanes::ROWS;
    static Vector load(const float *from) {
        return WideLanes::multiply(WideLanes::from_floats(from), WideLanes::doubles(power_of_two(-DOUBLE_SCALE)));
    }
    static Vector factors(const float *from) { return WideLanes::from_floats(from); }
    static Vector all(float x) { return WideLanes::doubles(x); }
    static void store(float *to, Vector x) {
        WideLanes::to_floats(to, WideLanes::multiply(x, WideLanes::doubles(power_of_two(DOUBLE_SCALE))));
    }

    explicit WideStep(const Rule &rule) : kept(WideLanes::words(~0ull << (DOUBLE_FRACTION - rule.format.fraction_bits))) {}
    Vector rounded(Vector a, Vector b, Vector acc, Longs added) const {
        const Longs x = WideLanes::quieted(WideLanes::as_words(WideLanes::multiply_add(a, b, acc)));
        return WideLanes::as_doubles(WideLanes::both(WideLanes::add(x, added), kept));
    }
    Longs kept;
};

// What takes the place of values beyond the largest finite one.
struct WideLimit {
    explicit WideLimit(const Rule &rule) : limit(WideLanes::doubles(first_beyond(rule) * power_of_two(-DOUBLE_SCALE))) {}
    Doubles apply(Doubles x) const { return WideLanes::infinite_from(x, limit); }
    static double first_beyond(const Rule &rule) {
        return std::isinf(rule.limit) ? power_of_two(128) : static_cast<double>(rule.limit);
    }
    Doubles limit;
};

struct WideAwayStep : WideStep {
    explicit WideAwayStep(const Rule &rule)
        : WideStep(rule), half(WideLanes::words(1ull << (DOUBLE_FRACTION - 1 - rule.format.fraction_bits))) {}
    Vector operator()(Vector a, Vector b, Vector acc) const { return rounded(a, b, acc, half); }
    Longs half;
};

struct LimitedWideAwayStep : WideAwayStep {
    explicit LimitedWideAwayStep(const Rule &rule) : WideAwayStep(rule), limit(rule) {}
    Vector operator()(Vector a, Vector b, Vector acc) const {
        return limit.apply(WideAwayStep::operator()(a, b, acc));
    }
    WideLimit limit;
};

// The random bits of a tile (see philox.h), each in the upper half of 64 bits.
class WideRandom {
public:
    static constexpr int COUNT = WideLanes::COUNT, VECTORS = WideLanes::VECTORS, ROWS = WideLanes::ROWS;

    // What depends on the step alone, in every lane.
    struct Step {
        Longs first, third, fourth;
    };

    WideRandom(const Rule &rule, int rows, int vectors)
        : place_(rule.place),
          keys_(rule.place),
          first_(WideLanes::words(PHILOX_FIRST)),
          second_(WideLanes::words(PHILOX_SECOND)) {
        for (int round = 0; round < PHILOX_ROUNDS; round++)
            for (int i = 0; i < 2; i++) wide_keys_[round][i] = keys_.words[round][i];
        last_key_ = WideLanes::words(uint64_t{keys_.words[PHILOX_ROUNDS - 1][0]} << 32);
        const Longs columns = WideLanes::multiply_lower(WideLanes::numbered(), WideLanes::words(place_.stride));
        for (int row = 0; row < rows; row++)
            for (int v = 0; v < vectors; v++) {
                const uint32_t index = place_.index + static_cast<uint32_t>(row) * place_.row_stride +
                                       static_cast<uint32_t>(v * COUNT) * place_.stride;
                prepare(index_[row][v], WideLanes::add(columns, WideLanes::words(index)));
            }
    }

    Step step(int64_t k) const {
        const PhiloxStep parts(place_.step + static_cast<uint32_t>(k), keys_);
        return {WideLanes::words(parts.first), WideLanes::words(parts.third), WideLanes::words(parts.fourth)};
    }

    Longs at(int row, int v, const Step &step) const {
        const Index &index = index_[row][v];
        Longs c0 = WideLanes::exclusive(index.first, step.first), c1 = index.second,
              c2 = WideLanes::exclusive(index.third, step.third), c3 = step.fourth;
UNROLL
        for (int round = PHILOX_PREPARED; round < PHILOX_ROUNDS - 1; round++) {
            const Longs p = WideLanes::multiply_lower(c0, first_), q = WideLanes::multiply_lower(c2, second_);
            c0 = WideLanes::exclusive(WideLanes::upper(q), c1, WideLanes::words(wide_keys_[round][0]));
            c2 = WideLanes::exclusive(WideLanes::upper(p), c3, WideLanes::words(wide_keys_[round][1]));
            c1 = q, c3 = p;
        }
        return WideLanes::exclusive(WideLanes::multiply_lower(c2, second_), WideLanes::raised(c1), last_key_);
    }

private:
    struct Index {
        Longs first, second, third;
    };

    // As PhiloxIndex has it. Only lower halves matter: products take no more.
    void prepare(Index &index, Longs numbers) const {
        const Longs product = WideLanes::multiply_lower(numbers, first_);
        const Longs key = WideLanes::words(place_.call ^ keys_.words[0][1]);
        const Longs next = WideLanes::multiply_lower(WideLanes::exclusive(WideLanes::upper(product), key), second_);
        index.first = WideLanes::exclusive(WideLanes::upper(next), WideLanes::words(keys_.words[1][0]));
        index.second = next;
        index.third = product;
    }

    const Place &place_;
    const PhiloxKeys keys_;
    const Longs first_, second_;
    uint64_t wide_keys_[PHILOX_ROUNDS][2];
    Longs last_key_;
    Index index_[ROWS][VECTORS];
};

struct RandomStep : WideStep {
    explicit RandomStep(const Rule &rule)
        : WideStep(rule),
          taken(WideLanes::words(~0ull << (64 - rule.place.random_bits))),
          shift(WideLanes::words(static_cast<uint64_t>(64 - DOUBLE_FRACTION + rule.format.fraction_bits))) {}
    Vector operator()(Vector a, Vector b, Vector acc, Longs random) const {
        return rounded(a, b, acc, WideLanes::shift_right(WideLanes::both(random, taken), shift));
    }
    Longs taken, shift;
};

struct LimitedRandomStep : RandomStep {
    explicit LimitedRandomStep(const Rule &rule) : RandomStep(rule), limit(rule) {}
    Vector operator()(Vector a, Vector b, Vector acc, Longs random) const {
        return limit.apply(RandomStep::operator()(a, b, acc, random));
    }
    WideLimit limit;
};

}  // namespace
