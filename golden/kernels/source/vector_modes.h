// The vector paths in the modes other than nearest even, over the class `Lanes`.
//
// Toward zero, down, up, nearest away: the environment rounds the exact a * b + acc to 24 bits in the mode, toward zero
// for the last; what is added then, by the sign, and cut off at the format's last place rounds it once more the same way.
#pragma once

#include "generic_modes.h"
#include "vectors.h"

namespace {

inline Rounding environment_of(Mode mode) {
    return mode == Mode::down ? Rounding::down : mode == Mode::up ? Rounding::up : Rounding::zero;
}

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
        const Mode mode = rule.mode;
        const bool stops = mode == Mode::toward_zero || mode == Mode::to_odd || mode == (negative ? Mode::up : Mode::down);
        const uint32_t last = 1u << (FLOAT_FRACTION - rule.format.fraction_bits);
        return (stops ? bits_of(rule.limit) - last : INFINITY_BITS) | (negative ? SIGN : 0);
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
          kept(Lanes::words(~below(rule))),
          limit(rule) {}
    Floats operator()(Floats a, Floats b, Floats acc) const {
        const Words x = Lanes::as_words(Lanes::multiply_add(a, b, acc)), negative = Lanes::signs(x);
        const Words rounded = Lanes::both(Lanes::add(x, Lanes::flipped(positive, negative, change)), kept);
        return Lanes::as_floats(limit.apply(rounded, negative));
    }
    static uint32_t below(const Rule &rule) { return (1u << (FLOAT_FRACTION - rule.format.fraction_bits)) - 1; }
    // `away` is the mode that rounds magnitudes of this sign up.
    static uint32_t added(const Rule &rule, Mode away) {
        if (rule.mode == Mode::nearest_away) return (below(rule) + 1) / 2;
        return rule.mode == away ? below(rule) : 0;
    }
    Words positive, change, kept;
    Limit limit;
};

struct OddStep : FloatLanes {
    static constexpr int ROWS = Lanes::SCALED_ROWS;
    explicit OddStep(const Rule &rule)
        : below(Lanes::words(DirectedStep::below(rule))), kept(Lanes::words(~DirectedStep::below(rule))), limit(rule) {}
    Floats operator()(Floats a, Floats b, Floats acc) const {
        const Words x = Lanes::multiply_add_to_odd(a, b, acc);
        // Whatever is cut off carries into the last place that stays.
        const Words sticky = Lanes::add(Lanes::both(x, below), below);
        const Words rounded = Lanes::both(Lanes::either(x, sticky), kept);
        return Lanes::as_floats(limit.apply(rounded, Lanes::signs(x)));
    }
    Words below, kept;
    Limit limit;
};

// Words 0, 2, ... and 1, 3, ... of a vector apart: each stands in the lower half of 64 bits, of which products take it.
struct LanesPhilox {
    struct State {
        Words c0, c1, c2, c3;
    };

    static Words rounds(State x, const PhiloxKeys &keys) {
        const Words first = Lanes::words(PHILOX_FIRST), second = Lanes::words(PHILOX_SECOND);
#pragma GCC unroll 8
        for (int round = PHILOX_PREPARED; round < PHILOX_ROUNDS; round++) {
            const Words p = Lanes::multiply_even(x.c0, first), q = Lanes::multiply_even(x.c2, second);
            x = {Lanes::exclusive(Lanes::upper(q), x.c1, Lanes::words(keys.words[round][0])), q,
                 Lanes::exclusive(Lanes::upper(p), x.c3, Lanes::words(keys.words[round][1])), p};
        }
        return x.c0;
    }

    template <int COUNT>
    static void fill(const uint32_t (*index)[COUNT], const PhiloxStep &step, const PhiloxKeys &keys, uint32_t *words) {
        const Words none = Lanes::words(0), first = Lanes::words(step.first), third = Lanes::words(step.third),
                    fourth = Lanes::words(step.fourth);
        for (int i = 0; i < COUNT; i += Lanes::COUNT) {
            const Words c0 = Lanes::exclusive(Lanes::load_words(index[0] + i), first, none);
            const Words c1 = Lanes::load_words(index[1] + i);
            const Words c2 = Lanes::exclusive(Lanes::load_words(index[2] + i), third, none);
            const Words even = rounds({c0, c1, c2, fourth}, keys);
            const Words odd = rounds({Lanes::upper(c0), Lanes::upper(c1), Lanes::upper(c2), fourth}, keys);
            Lanes::store_words(words + i, Lanes::interleaved(even, odd));
        }
    }
};

template <class Step>
const Tiles *tiles_in(Mode mode) {
    static const Tiles tiles[4] = {
        tiles_of<Step>(Rounding::nearest, join<Step>), tiles_of<Step>(Rounding::down, join<Step>),
        tiles_of<Step>(Rounding::up, join<Step>), tiles_of<Step>(Rounding::zero, join<Step>)};
    return &tiles[static_cast<int>(environment_of(mode))];
}

// The path with all modes; `to_odd` is the environment in which its instructions round to odd.
Path with_modes(const Path &given, Rounding to_odd) {
    Path path = given;
    add_generic_modes<LanesPhilox>(path);
    for (int code = 1; code <= 3; code++) {
        const Mode mode = static_cast<Mode>(code);
        path.modes[code].single = tiles_in<SingleStep>(mode);
        path.modes[code].scaled = tiles_in<DirectedStep>(mode);
    }
    path.modes[static_cast<int>(Mode::nearest_away)].scaled = tiles_in<DirectedStep>(Mode::nearest_away);
    path.modes[static_cast<int>(Mode::to_odd)].scaled = tiles<OddStep>(to_odd);
    return path;
}

}  // namespace
