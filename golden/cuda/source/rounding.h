// Values rounded to any format of product.h, in any mode.
#pragma once

#include "conversion.h"
#include "philox.h"

namespace {

// 2^exponent, a normal float.
INLINE float float_power(int exponent) { return float_of(static_cast<uint32_t>(127 + exponent) << FLOAT_FRACTION); }

// Rounds to any format and in any mode, in integers.
class AnyRounder {
public:
    AnyRounder(const Target &target, Mode mode, int random_bits, bool saturates = false)
        : mode_(mode),
          specials_(target.specials),
          saturates_(saturates),
          fraction_bits_(target.fraction_bits),
          emin_(1 - target.bias),
          random_bits_(random_bits),
          largest_(largest_of(target)) {}

    INLINE float operator()(float x, uint32_t word = 0) const {
        const uint32_t sign = bits_of(x) & SIGN, magnitude = bits_of(x) & MAGNITUDE;
        if (magnitude > INFINITY_BITS) return specials_ == Specials::finite ? 0 : float_of(FLOAT_NAN);
        if (magnitude == INFINITY_BITS) return beyond(sign);
        const float rounded = magnitude ? rounded_magnitude(magnitude, sign != 0, word) : 0;
        if (rounded > largest_) return stops(sign != 0) ? with_sign(largest_, sign) : beyond(sign);
        return rounded == 0 && specials_ == Specials::fnuz ? 0 : with_sign(rounded, sign);
    }

private:
    static float largest_of(const Target &target) {
        const bool ieee = target.specials == Specials::ieee;
        const int emax = (1 << target.exponent_bits) - (ieee ? 2 : 1) - target.bias;
        const double last = power_of_two(-target.fraction_bits);
        return static_cast<float>((2 - (target.specials == Specials::fn ? 2 * last : last)) * power_of_two(emax));
    }
    static float with_sign(float magnitude, uint32_t sign) { return float_of(bits_of(magnitude) | sign); }

    // What takes the place of an infinity.
    INLINE float beyond(uint32_t sign) const {
        if (specials_ == Specials::ieee) return float_of(INFINITY_BITS | sign);
        return specials_ == Specials::finite ? with_sign(largest_, sign) : float_of(FLOAT_NAN);
    }
    INLINE bool mode_stops(bool negative) const { return stays_finite(mode_, negative); }
    INLINE bool stops(bool negative) const {
        return saturates_ || mode_stops(negative);
    }

    INLINE float rounded_magnitude(uint32_t magnitude, bool negative, uint32_t word) const {
        const int field = static_cast<int>(magnitude >> FLOAT_FRACTION);
        const uint32_t fraction = magnitude & ((1u << FLOAT_FRACTION) - 1);
        const uint32_t significand = field ? fraction | 1u << FLOAT_FRACTION : fraction;
        const int low = (field ? field : 1) - 127 - FLOAT_FRACTION;  // exponent of its last digit
        const int leading = low + static_cast<int>(bits_of(static_cast<float>(significand)) >> FLOAT_FRACTION) - 127;
        const int lowest = (leading < emin_ ? emin_ : leading) - fraction_bits_;
        if (lowest <= low) return float_of(magnitude);
        const int dropped = lowest - low < 63 ? lowest - low : 63;
        const uint64_t kept = uint64_t{significand} >> dropped, rest = significand - (kept << dropped);
        const bool up = goes_up(kept, rest, dropped, negative, word);
        // In two factors, both normal: the product is exact, or infinite.
        const int half = lowest / 2;
        return static_cast<float>(kept + (up ? 1 : 0)) * float_power(half) * float_power(lowest - half);
    }

    INLINE bool goes_up(uint64_t kept, uint64_t rest, int dropped, bool negative, uint32_t word) const {
        static_assert(MODES == 7, "a mode needs its case");
        const uint64_t half = uint64_t{1} << (dropped - 1);
        switch (mode_) {
            case Mode::nearest_even:
                return rest > half || (rest == half && (kept & 1) != 0);
            case Mode::nearest_away:
                return rest >= half;
            case Mode::down:
                return rest != 0 && negative;
            case Mode::up:
                return rest != 0 && !negative;
            case Mode::to_odd:
                return rest != 0 && (kept & 1) == 0;
            case Mode::stochastic:
                return ((rest << random_bits_) >> dropped) + (word >> (32 - random_bits_)) >= uint64_t{1} << random_bits_;
            case Mode::toward_zero:
                return false;
        }
        return false;
    }

    Mode mode_;
    Specials specials_;
    bool saturates_;  // a finite value that is too large becomes the largest
    int fraction_bits_, emin_, random_bits_;
    float largest_;
};

// Rounds values to nearest, ties to even, into any format; the results are times 2^exponent.
class Converter {
public:
    explicit Converter(const Target &target)
        : kind_(kind_of(target)),
          short_(kind_ == Kind::fast ? format_of(target) : HALF),
          any_(target, Mode::nearest_even, 0),
          factor_(float_power(target.exponent - (kind_ == Kind::fast ? format_of(target).scale() : 0))) {}

    INLINE float operator()(float x) const {
        float values[1] = {x};
        convert(values);
        return values[0];
    }

    // Some values in place; what the format needs is asked once for all of them.
    template <int COUNT>
    INLINE void convert(float (&values)[COUNT]) const {
        if (kind_ == Kind::fast) {
            UNROLL
            for (int i = 0; i < COUNT; i++) values[i] = short_(values[i]) * factor_;
        } else if (kind_ == Kind::none) {
            UNROLL
            for (int i = 0; i < COUNT; i++) values[i] = is_nan(values[i]) ? float_of(FLOAT_NAN) : values[i] * factor_;
        } else {
            UNROLL
            for (int i = 0; i < COUNT; i++) values[i] = any_(values[i]) * factor_;
        }
    }

private:
    enum class Kind { none, fast, any };
    static Kind kind_of(const Target &target) {
        const Format format = format_of(target);
        if (target.specials != Specials::ieee) return Kind::any;
        return format.is_float() ? Kind::none : format.is_short() ? Kind::fast : Kind::any;
    }
    Kind kind_;
    ShortRounder short_;
    AnyRounder any_;
    float factor_;
};

// The random word of a result at a step.
INLINE uint32_t random_word(const PhiloxIndex &index, const PhiloxStep &step, const PhiloxKeys &keys) {
    const uint32_t parts[3][1] = {{index.first}, {index.second}, {index.third}};
    uint32_t word;
    ScalarPhilox::fill<1>(parts, step, keys, &word);
    return word;
}

INLINE Place place_of(const uint32_t (&key)[2], uint32_t call, int random_bits) {
    return {{key[0], key[1]}, call, random_bits, 0, 0, 0, 0};
}

constexpr uint32_t FIRST_PROMOTION = 1u << 31, FINAL_CONVERSION = ~0u;  // steps of NUMERICS section 10

}  // namespace
