// Steps to nearest even, written once over the class `Lanes` that the including file defines before this point: a vector
// of floats, or one float of a device.
//
// A step of a short format, all in scaled values: the exact a * b + acc rounded down and rounded up; of the two the one
// whose last bit is 1 (rounded to odd: 24 bits, of which the last says whether the sum is inexact); then to nearest at
// the format's last place, which for scaled values is one fixed bit of a float, whether normal or subnormal.
#pragma once

#include <cstdint>

#include "rule.h"

namespace {

using Floats = Lanes::Floats;
using Words = Lanes::Words;

constexpr uint32_t SIGN = 0x80000000, INFINITY_BITS = 0x7F800000;

// Scaled values rounded to odd, to nearest at the format's last place. Infinity and a canonical NaN stay.
class LastPlace {
public:
    explicit LastPlace(const Format &format)
        : shift_(Lanes::words(static_cast<uint32_t>(FLOAT_FRACTION - format.fraction_bits))),
          one_(Lanes::words(1)),
          half_less_one_(Lanes::words((1u << (FLOAT_FRACTION - format.fraction_bits - 1)) - 1)),
          kept_(Lanes::words(~0u << (FLOAT_FRACTION - format.fraction_bits))) {}

    Words round(Words x) const {
        // A sum that is exactly half way has bit 0 clear: the last kept bit joins there and makes ties go to even.
        const Words sticky = Lanes::or_and(x, Lanes::shift_right(x, shift_), one_);
        return Lanes::both(Lanes::add(sticky, half_less_one_), kept_);
    }

private:
    Words shift_, one_, half_less_one_, kept_;
};

struct FloatLanes {
    using Element = float;
    using Vector = Floats;
    static constexpr int COUNT = Lanes::COUNT, VECTORS = Lanes::VECTORS;
    static Vector load(const float *from) { return Lanes::load(from); }
    static Vector factors(const float *from) { return load(from); }
    static void store(float *to, Vector x) { Lanes::store(to, x); }
    static Vector all(float x) { return Lanes::floats(x); }
};

struct SingleStep : FloatLanes {
    static constexpr int ROWS = Lanes::SINGLE_ROWS;
    explicit SingleStep(const Rule &) {}
    Floats operator()(Floats a, Floats b, Floats acc) const { return Lanes::multiply_add(a, b, acc); }
};

struct ScaledStep : FloatLanes {
    static constexpr int ROWS = Lanes::SCALED_ROWS;
    explicit ScaledStep(const Rule &rule) : place(rule.format) {}
    Floats operator()(Floats a, Floats b, Floats acc) const {
        return Lanes::as_floats(place.round(Lanes::multiply_add_to_odd(a, b, acc)));
    }
    LastPlace place;
};

struct LimitedStep : ScaledStep {
    explicit LimitedStep(const Rule &rule) : ScaledStep(rule), limit(Lanes::floats(rule.limit)) {}
    Floats operator()(Floats a, Floats b, Floats acc) const {
        const Words x = Lanes::quieted(Lanes::multiply_add_to_odd(a, b, acc));
        return Lanes::infinite_from(Lanes::as_floats(place.round(x)), limit);
    }
    Floats limit;
};

}  // namespace
