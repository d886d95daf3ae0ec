// Accumulators of other machines on the path that any processor runs.
#include "accumulate.h"

#if defined(__GNUC__)

#include <cmath>

#define VECTOR_BYTES 16

namespace {

using V __attribute__((vector_size(VECTOR_BYTES))) = double;
using Floats __attribute__((vector_size(VECTOR_BYTES / 2))) = float;

inline V all(double value) { return V{value, value}; }
inline V truncated(V value) { return V{std::trunc(value[0]), std::trunc(value[1])}; }
inline V floored(V value) { return V{std::floor(value[0]), std::floor(value[1])}; }
// Not element by element: GCC 12 then leaves both conversions out.
inline V to_float(V value) { return __builtin_convertvector(__builtin_convertvector(value, Floats), V); }

}  // namespace

#include "accumulate_lanes.h"

const AccumulatingPath *accumulating_portable() { return &PATH; }

#else

const AccumulatingPath *accumulating_portable() { return nullptr; }

#endif
