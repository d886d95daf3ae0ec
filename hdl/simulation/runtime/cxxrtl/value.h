// A value of any width, as CXXRTL's; up to 64 bits are computed as one integer.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

#define QUICK inline __attribute__((__always_inline__))
#define SHARED __attribute__((__noinline__))

namespace cxxrtl {

constexpr size_t WORD = 32;

template <size_t N> struct value;
template <size_t N, size_t STOP, size_t START> struct part;
template <class High, class Low> struct joint;

// What may be assigned to, alone or with others side by side: parts, joints, and values that have a place.
template <class T> struct place {
    using type = void;
};
template <size_t N> struct place<value<N> &> {
    using type = part<N, N - 1, 0>;
};
template <size_t N, size_t STOP, size_t START> struct place<part<N, STOP, START>> {
    using type = part<N, STOP, START>;
};
template <class High, class Low> struct place<joint<High, Low>> {
    using type = joint<High, Low>;
};

template <size_t N> struct value {
    static constexpr size_t bits = N, chunks = (N + WORD - 1) / WORD;
    static constexpr bool IS_SHORT = N <= 64;
    static constexpr uint32_t TOP_MASK = ~uint32_t(0) >> ((WORD - N % WORD) % WORD);
    uint32_t data[chunks] = {};

    value() = default;
    value(const value &) = default;
    value &operator=(const value &) & = default;  // nothing is assigned to what goes away at once
    template <typename... Words> explicit constexpr value(Words... words) : data{words...} {}

    static QUICK value of(uint64_t integer) {
        static_assert(IS_SHORT, "of() is for values of up to 64 bits");
        value result;
        if constexpr (chunks == 0) return result;
        result.data[0] = uint32_t(integer);
        if constexpr (chunks == 2) result.data[1] = uint32_t(integer >> WORD);
        result.data[chunks - 1] &= TOP_MASK;
        return result;
    }
    QUICK uint64_t integer() const {
        static_assert(IS_SHORT, "integer() is for values of up to 64 bits");
        if constexpr (chunks == 0) {
            return 0;
        } else if constexpr (chunks == 1) {
            return data[0];
        } else {
            return data[0] | uint64_t(data[1]) << WORD;
        }
    }
    QUICK int64_t signed_integer() const {
        if constexpr (chunks == 0) return 0;
        return int64_t(integer() << (64 - N) % 64) >> (64 - N) % 64;
    }

    QUICK const value &val() const { return *this; }
    template <class Integer> QUICK Integer get() const { return Integer(integer()); }
    template <class Integer> QUICK void set(Integer given) { *this = of(uint64_t(given)); }

    QUICK bool is_zero() const {
        if constexpr (IS_SHORT) return integer() == 0;
        uint32_t any = 0;
        for (size_t n = 0; n < chunks; n++) any |= data[n];
        return any == 0;
    }
    explicit QUICK operator bool() const { return !is_zero(); }
    QUICK bool is_neg() const { return chunks && data[chunks - 1] >> ((N - 1) % WORD) & 1; }
    QUICK bool operator==(const value &other) const {
        if constexpr (IS_SHORT) return integer() == other.integer();
        uint32_t differing = 0;
        for (size_t n = 0; n < chunks; n++) differing |= data[n] ^ other.data[n];
        return differing == 0;
    }
    QUICK bool operator!=(const value &other) const { return !(*this == other); }

    // Cut off, or filled up with zeros or with the sign.
    template <size_t M> QUICK value<M> zcast() const {
        if constexpr (M == N) {
            return *this;
        } else if constexpr (IS_SHORT && M <= 64) {
            return value<M>::of(integer());
        } else {
            value<M> result;
            for (size_t n = 0; n < std::min(chunks, result.chunks); n++) result.data[n] = data[n];
            result.data[result.chunks - 1] &= result.TOP_MASK;
            return result;
        }
    }
    template <size_t M> QUICK value<M> scast() const {
        if constexpr (M <= N) {
            return zcast<M>();
        } else if constexpr (M <= 64) {
            return value<M>::of(uint64_t(signed_integer()));
        } else {
            value<M> result = zcast<M>();
            if (is_neg()) {
                result.data[chunks - 1] |= ~TOP_MASK;
                for (size_t n = chunks; n < result.chunks; n++) result.data[n] = ~uint32_t(0);
                result.data[result.chunks - 1] &= result.TOP_MASK;
            }
            return result;
        }
    }

    template <size_t STOP, size_t START> QUICK value<STOP - START + 1> cut() const {
        static_assert(STOP >= START && STOP < N, "no such bits");
        constexpr size_t WIDTH = STOP - START + 1;
        if constexpr (IS_SHORT) {
            return value<WIDTH>::of(integer() >> START);
        } else {
            value<WIDTH> result;
            constexpr size_t FIRST = START / WORD, SHIFT = START % WORD;
            for (size_t n = 0; n < result.chunks; n++) {
                uint64_t words = data[FIRST + n];
                if (SHIFT && FIRST + n + 1 < chunks) words |= uint64_t(data[FIRST + n + 1]) << WORD;
                result.data[n] = uint32_t(words >> SHIFT);
            }
            result.data[result.chunks - 1] &= result.TOP_MASK;
            return result;
        }
    }
    template <size_t STOP, size_t START> QUICK void put(const value<STOP - START + 1> &given) {
        static_assert(STOP >= START && STOP < N, "no such bits");
        constexpr size_t WIDTH = STOP - START + 1;
        if constexpr (IS_SHORT) {
            constexpr uint64_t MASK = ~uint64_t(0) >> (64 - WIDTH) << START;
            *this = of((integer() & ~MASK) | given.integer() << START);
        } else {
            constexpr size_t SHIFT = START % WORD;
            for (size_t n = 0; n < given.chunks; n++) {
                const uint32_t all = n + 1 == given.chunks ? given.TOP_MASK : ~uint32_t(0);
                const uint64_t mask = uint64_t(all) << SHIFT, bits = uint64_t(given.data[n]) << SHIFT;
                uint32_t *const to = data + START / WORD + n;
                to[0] = (to[0] & ~uint32_t(mask)) | uint32_t(bits);
                if (mask >> WORD) to[1] = (to[1] & ~uint32_t(mask >> WORD)) | uint32_t(bits >> WORD);
            }
        }
    }
    template <size_t STOP, size_t START> QUICK value<STOP - START + 1> slice() const { return cut<STOP, START>(); }
    template <size_t AT> QUICK value<1> slice() const { return cut<AT, AT>(); }
    template <size_t STOP, size_t START> QUICK part<N, STOP, START> slice() { return {*this}; }
    template <size_t AT> QUICK part<N, AT, AT> slice() { return {*this}; }

    template <class Other> QUICK auto concat(const Other &other) const & { return joined(other.val()); }
    template <class Other> QUICK auto concat(const Other &other) && { return joined(other.val()); }
    template <class Other> QUICK auto concat(Other &&other) & {
        return part<N, N - 1, 0>{*this}.concat(std::forward<Other>(other));
    }
    template <size_t M> QUICK value<N + M> joined(const value<M> &low) const {
        if constexpr (N == 0) {
            return low;
        } else if constexpr (M == 0) {
            return *this;
        } else if constexpr (N + M <= 64) {
            return value<N + M>::of(integer() << M | low.integer());
        } else {
            value<N + M> result = low.template zcast<N + M>();
            result.template put<N + M - 1, M>(*this);
            return result;
        }
    }
    template <size_t COUNT> QUICK value<COUNT> repeat() const {
        static_assert(N == 1, "only a bit is repeated");
        return scast<COUNT>();
    }

    template <class Function> QUICK value each(const value &other, Function function) const {
        value result;
        for (size_t n = 0; n < chunks; n++) result.data[n] = function(data[n], other.data[n]);
        result.data[chunks - 1] &= TOP_MASK;
        return result;
    }
    QUICK value bit_not() const { return each(*this, [](uint32_t x, uint32_t) { return ~x; }); }
    QUICK value bit_and(const value &o) const { return each(o, [](uint32_t x, uint32_t y) { return x & y; }); }
    QUICK value bit_or(const value &o) const { return each(o, [](uint32_t x, uint32_t y) { return x | y; }); }
    QUICK value bit_xor(const value &o) const { return each(o, [](uint32_t x, uint32_t y) { return x ^ y; }); }
    QUICK value update(const value &given, const value &mask) const {
        return bit_and(mask.bit_not()).bit_or(given.bit_and(mask));
    }

    QUICK value add(const value &other, uint64_t carry = 0) const {
        if constexpr (IS_SHORT) return of(integer() + other.integer() + carry);
        return each(other, [&carry](uint32_t x, uint32_t y) {
            carry += uint64_t(x) + y;
            const uint32_t low = uint32_t(carry);
            carry >>= WORD;
            return low;
        });
    }
    QUICK value sub(const value &other) const { return add(other.bit_not(), 1); }
    QUICK value neg() const { return value().sub(*this); }
    QUICK bool is_below(const value &other) const {
        if constexpr (IS_SHORT) return integer() < other.integer();
        return zcast<N + 1>().sub(other.template zcast<N + 1>()).is_neg();
    }
    QUICK bool is_below_signed(const value &other) const {
        return is_neg() != other.is_neg() ? is_neg() : is_below(other);
    }
    template <size_t M> QUICK value<M> mul(const value &other) const {
        if constexpr (IS_SHORT && M <= 64) {
            return value<M>::of(integer() * other.integer());
        } else {
            value<M> result;
            for (size_t i = 0; i < std::min(chunks, result.chunks); i++) {
                uint64_t carry = 0;
                for (size_t j = 0; i + j < result.chunks; j++) {
                    carry += result.data[i + j] + (j < chunks ? uint64_t(data[i]) * other.data[j] : 0);
                    result.data[i + j] = uint32_t(carry);
                    carry >>= WORD;
                }
            }
            result.data[result.chunks - 1] &= result.TOP_MASK;
            return result;
        }
    }

    template <size_t M> static QUICK size_t distance(const value<M> &amount) {
        for (size_t n = 1; n < amount.chunks; n++)
            if (amount.data[n]) return N;
        return amount.data[0];
    }
    template <size_t M> QUICK value shl(const value<M> &amount) const {
        const size_t by = distance(amount);
        if constexpr (IS_SHORT) return by < N ? of(integer() << by) : value();
        value result;
        for (size_t n = by / WORD; n < chunks; n++) {
            uint64_t words = uint64_t(data[n - by / WORD]) << WORD;
            if (n > by / WORD) words |= data[n - by / WORD - 1];
            result.data[n] = uint32_t(words << by % WORD >> WORD);
        }
        result.data[chunks - 1] &= TOP_MASK;
        return result;
    }
    template <size_t M> QUICK value shr(const value<M> &amount) const {
        const size_t by = distance(amount);
        if constexpr (IS_SHORT) return by < N ? of(integer() >> by) : value();
        value result;
        for (size_t n = 0; n + by / WORD < chunks && by < N; n++) {
            uint64_t words = data[n + by / WORD];
            if (n + by / WORD + 1 < chunks) words |= uint64_t(data[n + by / WORD + 1]) << WORD;
            result.data[n] = uint32_t(words >> by % WORD);
        }
        return result;
    }
    template <size_t M> QUICK value sshr(const value<M> &amount) const {
        return is_neg() ? bit_not().shr(amount).bit_not() : shr(amount);
    }
};

template <class High, class Other> QUICK auto side_by_side(const High &high, Other &&other) {
    using Low = typename place<Other>::type;
    if constexpr (std::is_void<Low>::value) {
        return high.val().joined(other.val());
    } else {
        return joint<High, Low>{high, Low{other}};
    }
}

// Bits of a value that may be read and assigned to.
template <size_t N, size_t STOP, size_t START> struct part {
    static constexpr size_t bits = STOP - START + 1;
    value<N> &whole;

    QUICK value<bits> val() const { return static_cast<const value<N> &>(whole).template cut<STOP, START>(); }
    QUICK operator value<bits>() const { return val(); }
    QUICK void operator=(const value<bits> &given) { whole.template put<STOP, START>(given); }
    template <class Other> QUICK auto concat(Other &&other) const {
        return side_by_side(*this, std::forward<Other>(other));
    }
};

// Two of them, the first in the high bits.
template <class High, class Low> struct joint {
    static constexpr size_t bits = High::bits + Low::bits;
    High high;
    Low low;

    QUICK value<bits> val() const { return high.val().joined(low.val()); }
    QUICK operator value<bits>() const { return val(); }
    QUICK void operator=(const value<bits> &given) {
        low = given.template cut<Low::bits - 1, 0>();
        high = given.template cut<bits - 1, Low::bits>();
    }
    template <class Other> QUICK auto concat(Other &&other) const {
        return side_by_side(*this, std::forward<Other>(other));
    }
};

}  // namespace cxxrtl
