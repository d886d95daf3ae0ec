// The threads of a block, on a device and on the host, so that one source runs on both.
//
// A kernel's work is cut into phases. On a device each thread runs a phase, then waits for the others of its block. On the
// host a loop runs it for one thread after the other, in an order that tests choose; what a thread keeps between phases is
// its state, in registers there and in an array here.
#pragma once

#include <cstdint>

#include "unroll.h"

constexpr int THREADS = 256;  // of a block, in every kernel

// Which of the blocks of a launch this is.
struct Block {
    int64_t number;
};

// `COUNT` elements that are read or written by one instruction.
template <class Element, int COUNT>
struct alignas(sizeof(Element) * COUNT) Group {
    Element at[COUNT];
};

#if defined(__CUDACC__)

#define INLINE __forceinline__
#define UNROLL_BY(N) _Pragma(CBFLOAT_TEXT(unroll N))
#define CBFLOAT_TEXT(WORDS) #WORDS

template <class State>
class Threads {
public:
    template <class Work>
    INLINE void each(const Work &work) {
        work(state_, static_cast<int>(threadIdx.x));
        __syncthreads();
    }

private:
    State state_;
};

// Copy 16 bytes into shared memory; they are there after `copies_arrive`.
INLINE void start_copy(void *to, const void *from) {
#if __CUDA_ARCH__ >= 800
    const uint32_t place = static_cast<uint32_t>(__cvta_generic_to_shared(to));
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(place), "l"(from) : "memory");
#else
    *static_cast<Group<uint32_t, 4> *>(to) = *static_cast<const Group<uint32_t, 4> *>(from);
#endif
}

INLINE void copies_arrive() {
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_all;" ::: "memory");
#endif
}

// Numbers that many threads add to, or that become the largest of what they find.
template <class Number>
INLINE void add_to(Number *to, Number number) {
    atomicAdd(to, number);
}

INLINE void raise_to(uint64_t *to, uint64_t number) { atomicMax(to, number); }

// A kernel NAME with one structure as its argument, whose blocks run BODY(argument, block, shared). A multiprocessor shall
// have room for the registers of BLOCKS of them.
#define KERNEL(NAME, BLOCKS, ARGUMENT, SHARED, BODY)                                                        \
    extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS) NAME(                                     \
        const __grid_constant__ ARGUMENT argument) {                                                        \
        __shared__ SHARED shared;                                                                           \
        BODY(argument, Block{static_cast<int64_t>(blockIdx.x)}, shared);                                    \
    }

#else

#include "host_threads.h"

#endif
