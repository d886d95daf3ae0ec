// Before a loop of a fixed, small number of rounds: no loop remains.
#pragma once

#if defined(__CUDACC__)
#define UNROLL _Pragma("unroll")
#else
#define UNROLL _Pragma("GCC unroll 8")
#endif
