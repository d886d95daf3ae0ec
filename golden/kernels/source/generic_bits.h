// Floats and doubles as their bits. Everything here is local to the including file.
#pragma once

#include <cstdint>
#include <cstring>

namespace {

inline uint64_t bits_of(double x) {
    uint64_t bits;
    std::memcpy(&bits, &x, sizeof bits);
    return bits;
}

inline double double_of(uint64_t bits) {
    double x;
    std::memcpy(&x, &bits, sizeof x);
    return x;
}

inline uint32_t bits_of(float x) {
    uint32_t bits;
    std::memcpy(&bits, &x, sizeof bits);
    return bits;
}

inline float float_of(uint32_t bits) {
    float x;
    std::memcpy(&x, &bits, sizeof x);
    return x;
}

inline double power_of_two(int exponent) { return double_of(static_cast<uint64_t>(1023 + exponent) << 52); }

}  // namespace
