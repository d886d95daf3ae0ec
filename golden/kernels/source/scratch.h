// Memory of one thread that stays for its next call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>

class Scratch {
public:
    Scratch() = default;
    Scratch(const Scratch &) = delete;
    Scratch &operator=(const Scratch &) = delete;
    ~Scratch() { std::free(memory_); }

    // At least `bytes`, aligned to a cache line; what was in it is lost.
    void *reserve(int64_t bytes) {
        if (bytes > size_ || !memory_) {  // no null pointer, even for nothing
            std::free(memory_);
            size_ = 0;
            memory_ = std::malloc(static_cast<size_t>(bytes) + LINE);
            if (!memory_) throw std::bad_alloc();
            size_ = bytes;
        }
        return reinterpret_cast<void *>((reinterpret_cast<uintptr_t>(memory_) + LINE - 1) & ~(LINE - 1));
    }

    // For arrays that would keep much memory from the rest of the program.
    void release_above(int64_t bytes) {
        if (size_ <= bytes) return;
        std::free(memory_);
        memory_ = nullptr;
        size_ = 0;
    }

private:
    static constexpr uintptr_t LINE = 64;
    void *memory_ = nullptr;
    int64_t size_ = 0;
};
