// The kernels of a cubin. CBFLOAT_COMMON asks for those that every product shares, CBFLOAT_MACHINE for the accumulators of
// other machines; otherwise CBFLOAT_MODE, CBFLOAT_CHAIN and CBFLOAT_JOIN, numbers of `Mode` and `Kind`, name a variant of
// the matrix product, in tiles of all sides or of CBFLOAT_TILE alone, or the one that counts.
#if defined(CBFLOAT_COMMON)

#include "blocks.h"
#include "elementwise.h"
#include "exponents.h"
#include "packing.h"
#include "softmax.h"

KERNEL(pack, 4, Packing, PackingMemory, pack_block)
KERNEL(round_values, 4, Elementwise, ElementwiseMemory, round_block)
KERNEL(round_blocks, 4, Blocks, BlocksMemory, round_blocks_block)
KERNEL(softmax16, 4, Softmax, SoftmaxMemory, softmax_block)
KERNEL(count_exponents, 4, Exponents, ExponentsMemory, exponents_block)

#elif CBFLOAT_CHAIN == 6

#include "counted.h"

KERNEL(multiply_counted, 2, CountedProduct, CountedMemory, count_block<static_cast<Mode>(CBFLOAT_MODE)>)

#elif defined(CBFLOAT_MACHINE)

#include "accumulation.h"

KERNEL(accumulate, 2, Accumulation, AccumulationMemory, accumulate_block)

#else

#include "gemm.h"

using Chosen = Variant<static_cast<Mode>(CBFLOAT_MODE), static_cast<Kind>(CBFLOAT_CHAIN), static_cast<Kind>(CBFLOAT_JOIN)>;
template <int P>
using Multiply = Gemm<Chosen, P>;

// Doubles and random bits leave no registers for 64 sums.
#define IS_HEAVY (CBFLOAT_CHAIN == 4 || CBFLOAT_MODE == 4 || CBFLOAT_MODE == 6)

// 64 sums in few registers, in halves or without totals: there is room for two blocks, which hide each other's waits.
#define IS_LIGHT (CBFLOAT_CHAIN == 2 || CBFLOAT_CHAIN == 3 || CBFLOAT_JOIN == 5)

#if !IS_HEAVY && (!defined(CBFLOAT_TILE) || CBFLOAT_TILE == 128)
KERNEL(multiply_128, 1 + IS_LIGHT, Product, Multiply<8>::Memory, Multiply<8>::run)
#endif
#if !defined(CBFLOAT_TILE) || CBFLOAT_TILE == 64
KERNEL(multiply_64, 2, Product, Multiply<4>::Memory, Multiply<4>::run)
#endif
#if !defined(CBFLOAT_TILE) || CBFLOAT_TILE == 32
KERNEL(multiply_32, 3, Product, Multiply<2>::Memory, Multiply<2>::run)
#endif

#endif
