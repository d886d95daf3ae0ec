// The step classes over one lane, on the host: each applied to arrays of operands. CBFLOAT_MODE names the mode.
#include <cmath>
#include <cstring>

#include "lanes1.h"
#include "mode_steps.h"
#include "native_halves.h"
#include "wide_steps.h"

namespace {

constexpr Mode MODE = static_cast<Mode>(CBFLOAT_MODE);

template <class Step>
void apply(const Rule &rule, int64_t count, const void *a, const void *b, const void *acc, const uint32_t *random,
           void *result) {
    using Element = typename Step::Element;
    const Step step(rule);
    const auto *x = static_cast<const Element *>(a), *y = static_cast<const Element *>(b);
    const auto *start = static_cast<const Element *>(acc);
    auto *to = static_cast<Element *>(result);
    for (int64_t i = 0; i < count; i += Step::COUNT) {
        typename Step::Vector factor = Step::load(x + i), column = Step::load(y + i), sum = Step::load(start + i);
        if constexpr (Step::COUNT == 1) factor = Step::all(x[i]);
        if constexpr (MODE == Mode::stochastic && Step::COUNT == 1)
            sum = step(factor, column, sum, WideLanes::words(uint64_t{random[i]} << 32));
        else
            sum = step(factor, column, sum);
        Step::store(to + i, sum);
    }
    (void)random;
}

template <Mode>
struct Kinds {  // toward zero, down, up
    using Single = SingleStep;
    using Plain = DirectedStep;
    using Limited = LimitedDirectedStep;
};
template <>
struct Kinds<Mode::nearest_even> {
    using Single = SingleStep;
    using Plain = ScaledStep;
    using Limited = LimitedStep;
};
template <>
struct Kinds<Mode::nearest_away> {
    using Single = LimitedWideAwayStep;
    using Plain = DirectedStep;
    using Limited = LimitedDirectedStep;
};
template <>
struct Kinds<Mode::to_odd> {
    using Single = SingleOddStep;
    using Plain = OddStep;
    using Limited = LimitedOddStep;
};
template <>
struct Kinds<Mode::stochastic> {
    using Single = LimitedRandomStep;
    using Plain = RandomStep;
    using Limited = LimitedRandomStep;
};

template <class Value, class ToOdd>
void round_values(const Format &format, int64_t count, const Value *values, float *result, const ToOdd &to_odd) {
    const LastPlace place(format);
    for (int64_t i = 0; i < count; i++) result[i] = Lanes::as_floats(place.round(to_odd(values[i])));
}

}  // namespace

extern "C" {

// kind: 0 accumulators in float, 1 scaled, 2 scaled with a limit, 3 float16, 4 bfloat16.
void step(int kind, int64_t format, float limit, int random_bits, int64_t count, const void *a, const void *b,
          const void *acc, const uint32_t *random, void *result) {
    Place place{};
    place.random_bits = random_bits;
    const Rule rule{Format::from_number(format), limit, MODE, place};
    using Steps = Kinds<MODE>;
    if (kind == 0) apply<Steps::Single>(rule, count, a, b, acc, random, result);
    if (kind == 1) apply<Steps::Plain>(rule, count, a, b, acc, random, result);
    if (kind == 2) apply<Steps::Limited>(rule, count, a, b, acc, random, result);
    if (kind == 3) apply<HalfStep>(rule, count, a, b, acc, random, result);
    if (kind == 4) apply<BrainStep>(rule, count, a, b, acc, random, result);
}

// Values times a factor, to nearest even.
void round_floats(int64_t format, float factor, int64_t count, const float *values, float *result) {
    round_values(Format::from_number(format), count, values, result,
                 [=](float x) { return Lanes::multiply_to_odd(x, factor); });
}
void round_doubles(int64_t format, double factor, int64_t count, const double *values, float *result) {
    round_values(Format::from_number(format), count, values, result,
                 [=](double x) { return Lanes::double_to_odd(x * factor); });
}
}
