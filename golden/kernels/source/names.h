// The rounding modes and the events of a step, in golden's order: every other table of the kernels is made from these or
// refuses to compile without a new one. Whoever loads the library, or compiles its headers, compares `NAMES`.
#pragma once

// A mode, its name in kernels.h, and whether it keeps what is too large at the largest finite value: if positive, if
// negative (NUMERICS section 9).
#define CBFLOAT_MODES(MODE)                        \
    MODE(nearest_even, NEAREST_EVEN, false, false) \
    MODE(toward_zero, TOWARD_ZERO, true, true)     \
    MODE(down, DOWN, true, false)                  \
    MODE(up, UP, false, true)                      \
    MODE(nearest_away, NEAREST_AWAY, false, false) \
    MODE(to_odd, TO_ODD, true, true)               \
    MODE(stochastic, STOCHASTIC, false, false)

// What is counted of the steps (NUMERICS section 11).
#define CBFLOAT_EVENTS(EVENT) EVENT(inexact) EVENT(underflow) EVENT(overflow) EVENT(invalid) EVENT(swamped)

#define CBFLOAT_LISTED(name, ...) name,
#define CBFLOAT_ONE_MORE(...) +1
#define CBFLOAT_SPELT(name, ...) #name " "

constexpr int MODES = 0 CBFLOAT_MODES(CBFLOAT_ONE_MORE);
constexpr int EVENTS = 0 CBFLOAT_EVENTS(CBFLOAT_ONE_MORE);

// Each name is followed by a space.
#define CBFLOAT_NAMES CBFLOAT_MODES(CBFLOAT_SPELT) "; " CBFLOAT_EVENTS(CBFLOAT_SPELT)

#if defined(CBFLOAT_NAMES_OF_GOLDEN)
constexpr bool same_text(const char *x, const char *y) { return *x == *y && (*x == 0 || same_text(x + 1, y + 1)); }
static_assert(same_text(CBFLOAT_NAMES, CBFLOAT_NAMES_OF_GOLDEN), "names.h must list the modes and events of golden");
#endif
