// The part of CXXRTL's runtime that the C++ of these units needs, under the same names, for a quick compiler run.
//
// CXXRTL's own header makes every operation of loops over 32-bit pieces, which the compiler then has to unroll and
// fold: two thirds of the time in which a large unit is compiled. Here a value of up to 64 bits is computed as one
// integer. What no unit needs is left out (division, black boxes, waveforms), and does not compile.
// tests/tools/test_runtime.py compares each operation with CXXRTL's.
#pragma once

#include <array>
#include <cassert>
#include <cstddef>
#include <cstdint>

#include "value.h"

#define CXXRTL_ASSERT(x) assert(x)

namespace cxxrtl {

struct observer {};
struct performer;

template <size_t N> struct wire {
    static constexpr size_t bits = N;
    value<N> curr, next;

    wire() = default;
    template <typename... Words> explicit constexpr wire(Words... words) : curr{words...}, next{words...} {}
    explicit constexpr wire(const value<N> &initial) : curr(initial), next(initial) {}
    wire(wire &&) = default;
    wire &operator=(wire &&) = default;

    template <class Integer> QUICK Integer get() const { return curr.template get<Integer>(); }
    template <class Integer> QUICK void set(Integer given) { next.template set<Integer>(given); }
    QUICK bool commit(observer &) {
        const bool changes = curr != next;
        curr = next;
        return changes;
    }
};

template <size_t N> struct memory {
    struct write {
        size_t index;
        value<N> given, mask;
        int priority;
    };
    // In one evaluation: more than any memory has ports.
    static constexpr size_t MOST = 16;

    const size_t depth;
    value<N> *const data;
    write writes[MOST];
    size_t count = 0;

    explicit memory(size_t depth) : depth(depth), data(new value<N>[depth]) {}
    memory(const memory &) = delete;
    ~memory() { delete[] data; }

    const value<N> &operator[](size_t index) const {
        assert(index < depth);
        return data[index];
    }
    // Kept until all is evaluated, then done in the order of priority.
    SHARED void update(size_t index, const value<N> &given, const value<N> &mask, int priority = 0) {
        assert(index < depth && count < MOST);
        size_t at = count++;
        for (; at && priority < writes[at - 1].priority; at--) writes[at] = writes[at - 1];
        writes[at] = {index, given, mask, priority};
    }
    SHARED bool commit(observer &) {
        bool changes = false;
        for (size_t at = 0; at < count; at++) {
            const write &each = writes[at];
            const value<N> now = data[each.index].update(each.given, each.mask);
            changes |= now != data[each.index];
            data[each.index] = now;
        }
        count = 0;
        return changes;
    }
};

struct interior {};

struct module {
    module() = default;
    module(module &&) = default;
    module &operator=(module &&) = default;
    virtual ~module() = default;
    virtual void reset() = 0;
    virtual bool eval(performer *performer = nullptr) = 0;
    virtual bool commit() = 0;
    size_t step() {
        for (size_t count = 1;; count++) {
            const bool converged = eval();
            if (!commit() || converged) return count;
        }
    }
};

}  // namespace cxxrtl

namespace cxxrtl_yosys {

using namespace cxxrtl;

struct memory_index {
    bool valid;
    size_t index;
    template <size_t N> memory_index(const value<N> &address, size_t offset, size_t depth) {
        static_assert(value<N>::chunks <= 1, "an address has up to 32 bits");
        const uint32_t place = N ? address.data[0] : 0;  // a memory of one word has an address of no bits
        valid = place >= offset && place < offset + depth;
        index = place - offset;
    }
};

#define ONE(NAME, BODY)                                                                  \
    template <size_t Y, size_t A> QUICK value<Y> NAME(const value<A> &a) { return BODY; }
#define TWO(NAME, BODY)                                                                                          \
    template <size_t Y, size_t A, size_t B> QUICK value<Y> NAME(const value<A> &a, const value<B> &b) { return BODY; }
#define Z(x) x.template zcast<Y>()
#define S(x) x.template scast<Y>()
#define BIT(condition) value<Y>{uint32_t(condition)}
#define ZZ(x) x.template zcast<std::max(A, B)>()
#define SS(x) x.template scast<std::max(A, B)>()

ONE(logic_not, BIT(a.is_zero()))
TWO(logic_and, BIT(!a.is_zero() && !b.is_zero()))
TWO(logic_or, BIT(!a.is_zero() || !b.is_zero()))
ONE(reduce_and, BIT(a.bit_not().is_zero()))
ONE(reduce_or, BIT(!a.is_zero()))
ONE(reduce_bool, BIT(!a.is_zero()))

template <size_t Y, size_t A> QUICK value<Y> reduce_xor(const value<A> &a) {
    uint32_t all = 0;
    for (size_t n = 0; n < a.chunks; n++) all ^= a.data[n];
    return BIT(__builtin_parity(all));
}
ONE(reduce_xnor, BIT(reduce_xor<1>(a).is_zero()))

ONE(not_u, Z(a).bit_not())
ONE(not_s, S(a).bit_not())
ONE(pos_u, Z(a))
ONE(pos_s, S(a))
ONE(neg_u, Z(a).neg())
ONE(neg_s, S(a).neg())

#define BOTH(NAME, METHOD)           \
    TWO(NAME##_uu, Z(a).METHOD(Z(b))) \
    TWO(NAME##_ss, S(a).METHOD(S(b)))
BOTH(and, bit_and)
BOTH(or, bit_or)
BOTH(xor, bit_xor)
BOTH(add, add)
BOTH(sub, sub)
TWO(xnor_uu, Z(a).bit_xor(Z(b)).bit_not())
TWO(xnor_ss, S(a).bit_xor(S(b)).bit_not())
TWO(mul_uu, ZZ(a).template mul<Y>(ZZ(b)))
TWO(mul_ss, S(a).template mul<Y>(S(b)))

#define COMPARED(NAME, UNSIGNED, SIGNED) \
    TWO(NAME##_uu, BIT(UNSIGNED))         \
    TWO(NAME##_ss, BIT(SIGNED))
COMPARED(eq, ZZ(a) == ZZ(b), SS(a) == SS(b))
COMPARED(ne, ZZ(a) != ZZ(b), SS(a) != SS(b))
COMPARED(lt, ZZ(a).is_below(ZZ(b)), SS(a).is_below_signed(SS(b)))
COMPARED(gt, ZZ(b).is_below(ZZ(a)), SS(b).is_below_signed(SS(a)))
COMPARED(le, !ZZ(b).is_below(ZZ(a)), !SS(b).is_below_signed(SS(a)))
COMPARED(ge, !ZZ(a).is_below(ZZ(b)), !SS(a).is_below_signed(SS(b)))

TWO(shl_uu, Z(a).shl(b))
TWO(shl_su, S(a).shl(b))
TWO(sshl_uu, Z(a).shl(b))
TWO(sshl_su, S(a).shl(b))
TWO(shr_uu, Z(a.shr(b)))
TWO(shr_su, S(a).shr(b))
TWO(sshr_uu, Z(a.shr(b)))
TWO(sshr_su, S(a.sshr(b)))
TWO(shift_us, b.is_neg() ? shl_uu<Y>(a, b.template scast<B + 1>().neg()) : shr_uu<Y>(a, b))
TWO(shift_ss, b.is_neg() ? shl_su<Y>(a, b.template scast<B + 1>().neg()) : shr_su<Y>(a, b))
TWO(shift_uu, shr_uu<Y>(a, b))
TWO(shift_su, shr_su<Y>(a, b))
TWO(shiftx_uu, shr_uu<Y>(a, b))
TWO(shiftx_su, shr_su<Y>(a, b))
TWO(shiftx_us, shift_us<Y>(a, b))
TWO(shiftx_ss, shift_ss<Y>(a, b))

#undef ONE
#undef TWO
#undef Z
#undef S
#undef BIT
#undef ZZ
#undef SS
#undef BOTH
#undef COMPARED

}  // namespace cxxrtl_yosys
