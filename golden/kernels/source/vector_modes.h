// The vector paths in the modes other than nearest even, over the class `Lanes`.
//
// Toward zero, down, up, nearest away: the environment rounds the exact a * b + acc to 24 bits in the mode, toward zero
// for the last; what is added then, by the sign, and cut off at the format's last place rounds it once more the same way.
#pragma once

#include "vector_counts.h"
#include "wide_steps.h"

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
        const Words x = Lanes::as_words(Lanes::multiply_add(a, b, acc)), negative = Lanes::signs(x);
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

template <Mode MODE, class Single, class SingleLimited, class Scaled, class ScaledLimited, Rounding ROUNDING>
void add_mode(Path &path) {
    InMode &kinds = path.in(MODE);
    kinds.single = tiles<Single, ROUNDING>();
    kinds.single_limited = tiles<SingleLimited, ROUNDING>();
    kinds.scaled = tiles<Scaled, ROUNDING>();
    kinds.scaled_limited = tiles<ScaledLimited, ROUNDING>();
}

template <Mode MODE, Rounding ROUNDING>
void add_directed(Path &path) {
    add_mode<MODE, SingleStep, SingleStep, DirectedStep, LimitedDirectedStep, ROUNDING>(path);
}

// The path with all modes; `TO_ODD` is the environment in which its instructions round to odd.
template <Rounding TO_ODD>
Path path_with_modes() {
    Path path = *path_of_lanes<TO_ODD>();
    add_counts<Lanes>(path);
    add_generic_modes<LanesPhilox>(path);
    add_directed<Mode::toward_zero, Rounding::zero>(path);
    add_directed<Mode::down, Rounding::down>(path);
    add_directed<Mode::up, Rounding::up>(path);
    add_mode<Mode::nearest_away, WideAwayStep, LimitedWideAwayStep, DirectedStep, LimitedDirectedStep, Rounding::zero>(
        path);
    add_mode<Mode::to_odd, SingleOddStep, SingleOddStep, OddStep, LimitedOddStep, TO_ODD>(path);
    InMode &random = path.in(Mode::stochastic);
    random.single = random.scaled = random_tiles<RandomStep>();
    random.single_limited = random.scaled_limited = random_tiles<LimitedRandomStep>();
    return path;
}

}  // namespace
