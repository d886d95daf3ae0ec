// Threads and blocks on the host: loops. Included by threads.h, where no device compiler reads it.
#pragma once

#include <algorithm>
#include <cstring>
#include <memory>
#include <numeric>
#include <random>
#include <vector>

// The loops remain loops: the compiler is done sooner.
#define INLINE inline
#define UNROLL_BY(N)
#undef UNROLL
#define UNROLL

// How the host runs a launch: whatever is chosen, the results are the same unless a barrier is missing.
struct HostOrder {
    enum { ascending, descending, shuffled } threads = ascending;
    bool blocks_descend = false;
    bool copies_wait = true;  // a copy lands when it is waited for, not at once
};

inline HostOrder &host_order() {
    static HostOrder order;
    return order;
}

struct HostCopy {
    void *to;
    const void *from;
};

// Of the thread that runs now.
inline std::vector<HostCopy> &host_copies() {
    static std::vector<HostCopy> copies;
    return copies;
}

inline void copies_arrive() {
    for (const HostCopy &copy : host_copies()) std::memcpy(copy.to, copy.from, 16);
    host_copies().clear();
}

inline void start_copy(void *to, const void *from) {
    host_copies().push_back({to, from});
    if (!host_order().copies_wait) copies_arrive();
}

template <class Number>
inline void add_to(Number *to, Number number) {
    *to += number;
}

inline void raise_to(uint64_t *to, uint64_t number) { *to = std::max(*to, number); }

template <class State>
class Threads {
public:
    Threads() : states_(new State[THREADS]), numbers_(THREADS) {
        std::memset(static_cast<void *>(states_.get()), 0xFF, sizeof(State) * THREADS);  // nothing is set by itself
        std::iota(numbers_.begin(), numbers_.end(), 0);
    }

    template <class Work>
    void each(const Work &work) {
        if (host_order().threads == HostOrder::shuffled) std::shuffle(numbers_.begin(), numbers_.end(), random_);
        for (const int number : numbers_) {
            const int thread = host_order().threads == HostOrder::descending ? THREADS - 1 - number : number;
            work(states_[thread], thread);
            host_copies().clear();  // what is not waited for is not there
        }
    }

private:
    std::unique_ptr<State[]> states_;
    std::vector<int> numbers_;
    std::mt19937 random_;
};

template <class Shared, class Argument, class Body>
void run_blocks(int64_t blocks, const void *given, const Body &body) {
    Argument argument;
    std::memcpy(static_cast<void *>(&argument), given, sizeof argument);
    const std::unique_ptr<Shared> shared(new Shared);
    for (int64_t i = 0; i < blocks; i++) {
        std::memset(static_cast<void *>(shared.get()), 0xFF, sizeof(Shared));
        body(argument, Block{host_order().blocks_descend ? blocks - 1 - i : i}, *shared);
    }
}

extern "C" inline __attribute__((used, visibility("default"))) void choose_host_order(int threads, int blocks_descend,
                                                                                     int copies_wait) {
    host_order().threads = static_cast<decltype(HostOrder::threads)>(threads);
    host_order().blocks_descend = blocks_descend != 0;
    host_order().copies_wait = copies_wait != 0;
}

#define KERNEL(NAME, BLOCKS, ARGUMENT, SHARED, BODY)                                                       \
    extern "C" __attribute__((visibility("default"))) void NAME##_on_host(int64_t x, int64_t y, int64_t z, \
                                                                          const void *argument) {          \
        run_blocks<SHARED, ARGUMENT>(x * y * z, argument,                                                  \
                                     [](const ARGUMENT &given, Block block, SHARED &shared) {              \
                                         BODY(given, block, shared);                                       \
                                     });                                                                   \
    }
