// The tiles of the vector paths that count.
#pragma once

#include "generic_counts.h"
#include "repeated_counts.h"

namespace {

template <class Counting>
constexpr CountedChain chain_of_floats() {
    if constexpr (Lanes::ROUNDS_BY_INSTRUCTION)
        return count_chain<Counting>;
    else
        return repeated_chain<Counting>;
}

template <class Counting>
constexpr CountedJoin join_of_floats() {
    if constexpr (Lanes::ROUNDS_BY_INSTRUCTION)
        return count_join<Counting>;
    else
        return repeated_join<Counting>;
}

// Let the tiles that round to nearest even count, too.
inline void add_counts(Path &path) {
    constexpr int ROWS = Lanes::SINGLE_ROWS, COLUMNS = columns_of<FloatLanes>;
    constexpr CountedChain any_single = counted_chain<Mode::nearest_even, ScalarPhilox, ROWS, COLUMNS>;
    constexpr CountedJoin scaled_join = count_join<ScaledCounting<true, true>>;
    static const Counted scaled = {count_chain<ScaledCounting<false, false>>, count_chain<ScaledCounting<false, true>>,
                                   scaled_join};
    constexpr CountedChain scaled_chain = count_chain<ScaledCounting<true, true>>;
    static const Counted scaled_limited = {scaled_chain, scaled_chain, scaled_join};
    using Finite = SingleCounting<false>;
    using Limited = SingleCounting<true>;
    static const Counted single = {chain_of_floats<Finite>(), any_single, join_of_floats<Limited>()};
    static const Counted single_limited = {chain_of_floats<Limited>(), any_single, join_of_floats<Limited>()};
    InMode &kinds = path.in(Mode::nearest_even);
    static const Tiles tiles[] = {counting(*kinds.single, &single), counting(*kinds.single_limited, &single_limited),
                                  counting(*kinds.scaled, &scaled), counting(*kinds.scaled_limited, &scaled_limited)};
    kinds.single = &tiles[0];
    kinds.single_limited = &tiles[1];
    kinds.scaled = &tiles[2];
    kinds.scaled_limited = &tiles[3];
}

}  // namespace
