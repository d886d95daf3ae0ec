#include "plan.h"

namespace {

// Whether every value of the format, times 2^exponent, is a float (exactly), and the factors are floats, too.
bool packs(const Format &format, int exponent) {
    if (format.is_float()) return exponent == 0;
    if (!format.is_short()) return false;
    const int factor = exponent - format.scale();
    return format.lowest_digit() + exponent >= -149 && format.emax() + exponent <= 127 && factor >= -126 &&
           factor <= 127;
}

Rule rule_of(const Format &format, Mode mode, const Place &place) {
    const int limit = format.emax() + 1 + format.scale();  // 2^limit is the first value that is too large, scaled
    return {format, limit > 127 ? INFINITY : std::ldexp(1.0f, limit), mode, place};
}

#define CBFLOAT_SAME(name, NAME, ...) static_assert(static_cast<int>(Mode::name) == CBFLOAT_##NAME, #name);
CBFLOAT_MODES(CBFLOAT_SAME)
#undef CBFLOAT_SAME

Mode mode_of(const cbfloat_rounding *rounding, int64_t cbfloat_rounding::*field) {
    return rounding ? static_cast<Mode>(rounding->*field) : Mode::nearest_even;
}

Place place_of(const cbfloat_rounding *rounding) {
    if (!rounding) return {};
    return {{static_cast<uint32_t>(rounding->seed), static_cast<uint32_t>(rounding->seed >> 32)},
            static_cast<uint32_t>(rounding->call), static_cast<int>(rounding->random_bits), 0, 0, 0, 0};
}

}  // namespace

Plan::Plan(const cbfloat_product &product, const Path &given, const cbfloat_rounding *rounding, bool counting)
    : path(given),
      operand(Format::from_number(product.operand)),
      inner(Format::from_number(product.inner)),
      outer(Format::from_number(product.outer)),
      result(Format::from_number(product.result_format)),
      contents(product.contents),
      is_chain(product.chunk < 0 || (inner.is_float() && outer.is_float() && product.chunk == 0)),
      dot(product.mode == CBFLOAT_DOT),
      chain_rule(rule_of(inner, mode_of(rounding, &cbfloat_rounding::steps), place_of(rounding))),
      join_rule(rule_of(outer, chain_rule.mode, chain_rule.place)),
      last_rule(rule_of(result, mode_of(rounding, &cbfloat_rounding::last), chain_rule.place)),
      counts(counting),
      flushes(has(CBFLOAT_FLUSHED)) {
    convert = path.in(last_rule.mode).convert;
    if (!choose_scaled()) choose_generic();
    // The last digit of such a product is the lowest of the inner format, even where its first one is a carry.
    const int lowest = inner.lowest_digit() + a_exponent + b_exponent;
    smallest_without_tiny = std::ldexp(1.0, lowest + 2 * operand.fraction_bits + 1);
}

double Plan::bound(double start, int64_t steps, double product) const {
    const double count = static_cast<double>(steps);
    switch (chain_rule.mode) {
        case Mode::nearest_even:
        case Mode::nearest_away:
        case Mode::toward_zero:
            return start + 2 * count * product;
        default:  // any choice between two neighbours
            break;
    }
    const double ulp = std::ldexp(1.0, -inner.fraction_bits), smallest = std::ldexp(1.0, inner.lowest_digit());
    return (start + count * (product + smallest)) * std::exp(count * ulp);
}

bool Plan::choose_scaled() {
    const InMode &kinds = this->kinds();
    if (!kinds.scaled || !(outer.is_float() || outer.is_short())) return false;
    if (counts && !counts_scaled()) return false;
    total_exponent = outer.is_float() ? 0 : outer.scale();
    joining = outer.is_float() ? kinds.single_limited : kinds.scaled_limited;
    const bool native = kinds.half && (!counts || kinds.half->counted) && !is_chain && operand == inner && inner == Format{5, 10, 15};
    if (native) {
        tiles = limited = kinds.half;
        halves = true;
        join_factor = std::ldexp(1.0f, total_exponent);
        return total_exponent >= -126 && total_exponent <= 127;
    }
    int product_exponent = 0;
    if (inner.is_float()) {
        tiles = kinds.single;
        limited = kinds.single_limited;
    } else if (inner.is_short()) {
        tiles = kinds.scaled;
        limited = kinds.scaled_limited;
        product_exponent = inner.scale();
    } else {
        return false;
    }
    const int join_exponent = total_exponent - product_exponent;
    if (join_exponent < -126 || join_exponent > 127) return false;
    join_factor = std::ldexp(1.0f, join_exponent);
    // The scale of the products is that of the second operand as far as that has room, and of the first beyond.
    for (b_exponent = product_exponent; b_exponent != 0 && !packs(operand, b_exponent);)
        b_exponent += b_exponent < 0 ? 1 : -1;
    a_exponent = product_exponent - b_exponent;
    return packs(operand, a_exponent) && packs(operand, b_exponent);
}

// Counting needs two bits to spare in a float, and promotions into a float that are never inexact below its smallest
// normal value.
bool Plan::counts_scaled() const {
    const auto has_room = [](const Format &format) { return format.is_float() || format.fraction_bits <= 20; };
    return path.in(chain_rule.mode).scaled->counted && has_room(inner) && has_room(outer) &&
           !(outer.is_float() && inner.lowest_digit() < -149);
}

void Plan::choose_generic() {
    tiles = limited = joining = kinds().generic;
    a_exponent = b_exponent = total_exponent = 0;
    join_factor = 1;
    halves = false;
}
