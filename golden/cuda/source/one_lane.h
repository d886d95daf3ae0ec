// The accumulators of other machines in one double: the rule of the CPU's kernels, in a name space of its own.
#pragma once

#include <cmath>
#include <cstdint>

#include "accumulate.h"
#include "generic_bits.h"
#include "kernels.h"

namespace machine {

// One double in the place of a vector, and its bits: a comparison is true with all of them.
struct Bits {
    long long bits;
    Bits() = default;
    Bits(long long given) : bits(given) {}
    friend Bits operator&(Bits x, Bits y) { return x.bits & y.bits; }
    friend Bits operator|(Bits x, Bits y) { return x.bits | y.bits; }
    friend Bits operator^(Bits x, Bits y) { return x.bits ^ y.bits; }
    friend Bits operator+(Bits x, Bits y) { return x.bits + y.bits; }
    friend Bits operator>>(Bits x, int by) { return x.bits >> by; }
    friend Bits operator<<(Bits x, int by) { return static_cast<long long>(static_cast<unsigned long long>(x.bits) << by); }
    Bits operator~() const { return ~bits; }
};

struct V {
    double number;
    V() = default;
    V(double given) : number(given) {}
    friend V operator+(V x, V y) { return x.number + y.number; }
    friend V operator-(V x, V y) { return x.number - y.number; }
    friend V operator*(V x, V y) { return x.number * y.number; }
    V &operator+=(V other) { return *this = *this + other; }
    V &operator*=(V other) { return *this = *this * other; }
    friend Bits operator<(V x, V y) { return x.number < y.number ? -1 : 0; }
    friend Bits operator>(V x, V y) { return x.number > y.number ? -1 : 0; }
    friend Bits operator>=(V x, V y) { return x.number >= y.number ? -1 : 0; }
    friend Bits operator==(V x, V y) { return x.number == y.number ? -1 : 0; }
};

inline Bits bits_of(V value) { return static_cast<long long>(::bits_of(value.number)); }
inline V with_bits(Bits bits) { return double_of(static_cast<uint64_t>(bits.bits)); }
inline V all(double value) { return value; }
inline V truncated(V value) { return std::trunc(value.number); }
inline V floored(V value) { return std::floor(value.number); }
inline V to_float(V value) { return static_cast<double>(static_cast<float>(value.number)); }

#include "accumulate_lanes.h"

}  // namespace machine
