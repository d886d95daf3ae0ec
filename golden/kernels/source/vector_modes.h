// The vector paths in the modes other than nearest even, over the class `Lanes`.
#pragma once

#include "counting_tiles.h"
#include "mode_steps.h"
#include "vectors.h"
#include "wide_loops.h"

namespace {

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
    add_counts(path);
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
