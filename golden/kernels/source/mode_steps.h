// Steps of short formats in the modes other than nearest even, over the class `Lanes` as in steps.h.
//
// Toward zero, down, up, nearest away: the environment rounds the exact a * b + acc to 24 bits in the mode, toward zero
// for the last; what is added then, by the sign, and cut off at the format's last place rounds it once more the same way.
#pragma once

#include "generic_bits.h"
#include "steps.h"

namespace {

// What takes the place of scaled values beyond the largest finite one.
class Limit {
public:
    explicit Limit(const Rule &rule)
        : limit_(Lanes::floats(rule.limit)), positive_(words_for(rule, false)), change_(change_for(rule)) {}

    Words apply(Words x, Words negative) const {
        return Lanes::replaced(x, limit_, Lanes::flipped(positive_, negative, change_));
    }

private:
    static uint32_t beyond(const Rule &rule, bool negative) {
        const uint32_t last = 1u << (FLOAT_FRACTION - rule.format.fraction_bits);
        return (stays_finite(rule.mode, negative) ? bits_of(rule.limit) - last : INFINITY_BITS) | (negative ? SIGN : 0);
    }
    static Words words_for(const Rule &rule, bool negative) { return Lanes::words(beyond(rule, negative)); }
    static Words change_for(const Rule &rule) { return Lanes::words(beyond(rule, false) ^ beyond(rule, true)); }

    Floats limit_;
    Words positive_, change_;
};

struct DirectedStep : FloatLanes {
    static constexpr int ROWS = Lanes::SCALED_ROWS;
    explicit DirectedStep(const Rule &rule)
        : positive(Lanes::words(added(rule, Mode::up))),
          change(Lanes::words(added(rule, Mode::up) ^ added(rule, Mode::down))),
          kept(Lanes::words(~below(rule))) {}
    Floats operator()(Floats a, Floats b, Floats acc) const {
        const Words x = Lanes::as_words(Lanes::multiply_add(a, b, acc));
        return Lanes::as_floats(rounded(x, Lanes::signs(x)));
    }
    Words rounded(Words x, Words negative) const {
        return Lanes::both(Lanes::add(x, Lanes::flipped(positive, negative, change)), kept);
    }
    static uint32_t below(const Rule &rule) { return (1u << (FLOAT_FRACTION - rule.format.fraction_bits)) - 1; }
    // `away` is the mode that rounds magnitudes of this sign up.
    static uint32_t added(const Rule &rule, Mode away) {
        if (rule.mode == Mode::nearest_away) return (below(rule) + 1) / 2;
        return rule.mode == away ? below(rule) : 0;
    }
    Words positive, change, kept;
};

struct LimitedDirectedStep : DirectedStep {
    explicit LimitedDirectedStep(const Rule &rule) : DirectedStep(rule), limit(rule) {}
    Floats operator()(Floats a, Floats b, Floats acc) const {
        const Words x = Lanes::quieted(Lanes::as_words(Lanes::multiply_add(a, b, acc))), negative = Lanes::signs(x);
        return Lanes::as_floats(limit.apply(rounded(x, negative), negative));
    }
    Limit limit;
};

struct SingleOddStep : FloatLanes {
    static constexpr int ROWS = Lanes::SCALED_ROWS;
    explicit SingleOddStep(const Rule &) {}
    Floats operator()(Floats a, Floats b, Floats acc) const {
        return Lanes::as_floats(Lanes::multiply_add_to_odd(a, b, acc));
    }
};

struct OddStep : FloatLanes {
    static constexpr int ROWS = Lanes::SCALED_ROWS;
    explicit OddStep(const Rule &rule)
        : below(Lanes::words(DirectedStep::below(rule))), kept(Lanes::words(~DirectedStep::below(rule))) {}
    Floats operator()(Floats a, Floats b, Floats acc) const {
        return Lanes::as_floats(rounded(Lanes::multiply_add_to_odd(a, b, acc)));
    }
    Words rounded(Words x) const {
        // Whatever is cut off carries into the last place that stays.
        const Words sticky = Lanes::add(Lanes::both(x, below), below);
        return Lanes::both(Lanes::either(x, sticky), kept);
    }
    Words below, kept;
};

struct LimitedOddStep : OddStep {
    explicit LimitedOddStep(const Rule &rule) : OddStep(rule), limit(rule) {}
    Floats operator()(Floats a, Floats b, Floats acc) const {
        const Words x = Lanes::multiply_add_to_odd(a, b, acc);
        return Lanes::as_floats(limit.apply(rounded(x), Lanes::signs(x)));
    }
    Limit limit;
};

}  // namespace
