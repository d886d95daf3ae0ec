// The step classes of a variant: a rounding mode, a kind of chain, a kind of join.
//
// All have one interface: `Element` in panels, `Vector` of COUNT of them, load, store, all, and a step with a random word.
#pragma once

#include "generic_mode_steps.h"
#include "mode_steps.h"
#include "native_halves.h"
#include "rounding.h"
#include "wide_steps.h"

namespace {

enum class Kind { single, scaled, float16, bfloat16, generic, none, counted };

// A step without random bits.
template <class Step>
struct Wordless : Step {
    using Step::Step;
    INLINE typename Step::Vector operator()(typename Step::Vector a, typename Step::Vector b, typename Step::Vector acc,
                                            uint32_t) const {
        return Step::operator()(a, b, acc);
    }
};

template <class Step>
struct WithWord : Step {
    using Step::Step;
    INLINE typename Step::Vector operator()(typename Step::Vector a, typename Step::Vector b, typename Step::Vector acc,
                                            uint32_t word) const {
        return Step::operator()(a, b, acc, WideLanes::words(uint64_t{word} << 32));
    }
};

// Any format, in doubles.
struct OneFloat {
    using Element = float;
    using Vector = float;
    static constexpr int COUNT = 1;
    static INLINE float load(const float *from) { return *from; }
    static INLINE void store(float *to, float x) { *to = x; }
    static INLINE float all(float x) { return x; }
};

struct AnyNearestStep : OneFloat {
    explicit AnyNearestStep(const Rule &rule) : step(rule) {}
    INLINE float operator()(float a, float b, float acc, uint32_t) const { return step(a, b, acc); }
    GenericStep step;
};

template <Mode MODE>
struct AnyModeStep : OneFloat {
    explicit AnyModeStep(const Rule &rule) : step(rule) {}
    INLINE float operator()(float a, float b, float acc, uint32_t word) const { return step(a, b, acc, word); }
    ModeStep<MODE> step;
};

// `Plain` serves where no sum is beyond the largest finite value, `Limited` always.
template <class PlainStep, class LimitedStep>
struct Pair {
    using Plain = PlainStep;
    using Limited = LimitedStep;
};
template <class Step>
using Alone = Pair<Step, Step>;

template <Mode MODE, Kind KIND>
struct StepsOf;

template <>
struct StepsOf<Mode::nearest_even, Kind::single> : Alone<Wordless<SingleStep>> {};
template <>
struct StepsOf<Mode::nearest_even, Kind::scaled> : Pair<Wordless<ScaledStep>, Wordless<LimitedStep>> {};
template <>
struct StepsOf<Mode::nearest_even, Kind::float16> : Alone<Wordless<HalfStep>> {};
template <>
struct StepsOf<Mode::nearest_even, Kind::bfloat16> : Alone<Wordless<BrainStep>> {};
template <>
struct StepsOf<Mode::nearest_even, Kind::generic> : Alone<AnyNearestStep> {};

// Toward zero, down, up, which an instruction has; of nearest away the scaled steps are of the same kind.
template <Mode MODE>
struct StepsOf<MODE, Kind::single> : Alone<Wordless<SingleStep>> {
    static_assert(MODE == Mode::toward_zero || MODE == Mode::down || MODE == Mode::up, "a mode needs its steps");
};
template <Mode MODE>
struct StepsOf<MODE, Kind::scaled> : Pair<Wordless<DirectedStep>, Wordless<LimitedDirectedStep>> {
    static_assert(MODE == Mode::nearest_away || direction_of(MODE) != Rounding::nearest, "a mode needs its steps");
};
template <Mode MODE>
struct StepsOf<MODE, Kind::generic> : Alone<AnyModeStep<MODE>> {};

template <>
struct StepsOf<Mode::nearest_away, Kind::single> : Alone<Wordless<LimitedWideAwayStep>> {};
template <>
struct StepsOf<Mode::to_odd, Kind::single> : Alone<Wordless<SingleOddStep>> {};
template <>
struct StepsOf<Mode::to_odd, Kind::scaled> : Pair<Wordless<OddStep>, Wordless<LimitedOddStep>> {};
template <>
struct StepsOf<Mode::stochastic, Kind::single> : Alone<WithWord<LimitedRandomStep>> {};
template <>
struct StepsOf<Mode::stochastic, Kind::scaled> : Pair<WithWord<RandomStep>, WithWord<LimitedRandomStep>> {};

template <Mode MODE, Kind CHAIN, Kind JOIN>
struct Variant {
    static constexpr Mode mode = MODE;
    static constexpr bool joins = JOIN != Kind::none;  // otherwise the total is the chain itself
    static constexpr bool random = MODE == Mode::stochastic;
    static constexpr bool bounded = CHAIN == Kind::scaled;
    static constexpr bool native = CHAIN == Kind::float16 || CHAIN == Kind::bfloat16;
    // Products between the ends of the innermost loop: a whole stage where a step is one instruction.
    static constexpr int unrolled = CHAIN == Kind::single || native ? STAGE : 1;
    using Plain = typename StepsOf<MODE, CHAIN>::Plain;
    using Limited = typename StepsOf<MODE, CHAIN>::Limited;
    using Join = typename StepsOf<MODE, joins ? JOIN : CHAIN>::Limited;
    static_assert(!joins || Join::COUNT == 1, "totals are floats");

    // An element as a float.
    static INLINE float value(typename Plain::Element element) {
        if constexpr (CHAIN == Kind::float16)
            return half_to_float(element);
        else if constexpr (CHAIN == Kind::bfloat16)
            return brain_to_float(element);
        else
            return element;
    }
};

}  // namespace
