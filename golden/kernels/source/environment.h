// The floating-point environment of this thread, set for a kernel and restored after it.
#pragma once

#include <cstdint>

#include "rule.h"

#if defined(__x86_64__) || defined(_M_X64)
#include <immintrin.h>
#endif

class Environment {
public:
    explicit Environment(Rounding rounding) : saved_(read()), current_(word(rounding)) { set(current_); }
    ~Environment() { set(saved_); }
    Environment(const Environment &) = delete;
    Environment &operator=(const Environment &) = delete;

    void change(Rounding rounding) {
        if (word(rounding) != current_) set(current_ = word(rounding));
    }

private:
#if defined(__x86_64__) || defined(_M_X64)
    using Word = uint32_t;
    static Word word(Rounding rounding) {
        constexpr Word MASKED = 0x1F80, FLUSH_TO_ZERO = 0x8000;  // tiny results are found after rounding
        if (rounding == Rounding::flushed) return MASKED | FLUSH_TO_ZERO;
        return MASKED | static_cast<Word>(rounding) << 13;
    }
    static Word read() { return _mm_getcsr(); }
    static void set(Word word) { _mm_setcsr(word); }
#elif defined(__aarch64__)
    using Word = uint64_t;
    static Word word(Rounding rounding) {
        constexpr Word FIELDS[] = {0, 2, 1, 3, 0};  // flushed: on x86 alone, where a path has tiles that need it
        return FIELDS[static_cast<int>(rounding)] << 22;
    }
    static Word read() {
        Word word;
        __asm__ volatile("mrs %0, fpcr" : "=r"(word));
        return word;
    }
    static void set(Word word) { __asm__ volatile("msr fpcr, %0" : : "r"(word) : "memory"); }
#else
    using Word = int;
    static Word word(Rounding) { return 0; }
    static Word read() { return 0; }
    static void set(Word) {}
#endif

    Word saved_, current_;
};
