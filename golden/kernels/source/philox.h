// The random bits of stochastic rounding: word 0 of Philox4x32-10 (NUMERICS section 10).
//
// The counter's words are index, 0, step and call. After two rounds, each word is made of one that depends on the index
// and one that depends on the step: both are prepared, and eight rounds remain for each pair of them.
#pragma once

#include <cstdint>

#include "rule.h"

namespace {

constexpr uint32_t PHILOX_FIRST = 0xD2511F53, PHILOX_SECOND = 0xCD9E8D57;
constexpr uint32_t PHILOX_KEY_STEPS[2] = {0x9E3779B9, 0xBB67AE85};
constexpr int PHILOX_ROUNDS = 10, PHILOX_PREPARED = 2;

inline uint32_t high_of(uint64_t x) { return static_cast<uint32_t>(x >> 32); }
inline uint32_t low_of(uint64_t x) { return static_cast<uint32_t>(x); }

struct PhiloxKeys {
    uint32_t words[PHILOX_ROUNDS][2];

    explicit PhiloxKeys(const Place &place) {
        for (int round = 0; round < PHILOX_ROUNDS; round++)
            for (int i = 0; i < 2; i++)
                words[round][i] = place.key[i] + static_cast<uint32_t>(round) * PHILOX_KEY_STEPS[i];
    }
};

// The parts of words 0, 1, 2 after two rounds that depend on the index of a result; word 3 has none.
struct PhiloxIndex {
    uint32_t first, second, third;

    PhiloxIndex() = default;
    PhiloxIndex(uint32_t index, uint32_t call, const PhiloxKeys &keys) {
        const uint64_t product = uint64_t{PHILOX_FIRST} * index;
        const uint64_t next = uint64_t{PHILOX_SECOND} * (high_of(product) ^ call ^ keys.words[0][1]);
        first = high_of(next) ^ keys.words[1][0];
        second = low_of(next);
        third = low_of(product);
    }
};

// The parts of words 0, 2, 3 that depend on the step; word 1 has none.
struct PhiloxStep {
    uint32_t first, third, fourth;

    PhiloxStep(uint32_t step, const PhiloxKeys &keys) {
        const uint64_t product = uint64_t{PHILOX_SECOND} * step;
        const uint64_t next = uint64_t{PHILOX_FIRST} * (high_of(product) ^ keys.words[0][0]);
        first = low_of(product);
        third = high_of(next) ^ keys.words[1][1];
        fourth = low_of(next);
    }
};

// Words of `COUNT` neighbouring results, one by one.
struct ScalarPhilox {
    template <int COUNT>
    static void fill(const uint32_t (*index)[COUNT], const PhiloxStep &step, const PhiloxKeys &keys, uint32_t *words) {
        for (int i = 0; i < COUNT; i++) {
            uint32_t c0 = index[0][i] ^ step.first, c1 = index[1][i], c2 = index[2][i] ^ step.third, c3 = step.fourth;
            for (int round = PHILOX_PREPARED; round < PHILOX_ROUNDS; round++) {
                const uint64_t p = uint64_t{PHILOX_FIRST} * c0, q = uint64_t{PHILOX_SECOND} * c2;
                c0 = high_of(q) ^ c1 ^ keys.words[round][0];
                c2 = high_of(p) ^ c3 ^ keys.words[round][1];
                c1 = low_of(q);
                c3 = low_of(p);
            }
            words[i] = c0;
        }
    }
};

}  // namespace
