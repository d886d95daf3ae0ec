// Accumulators of other machines on the path that any processor runs.
#include "accumulate.h"

#if defined(__GNUC__)

#include <cmath>

#define VECTOR_BYTES 16

namespace {

using V __attribute__((vector_size(VECTOR_BYTES))) = double;

inline V truncated(V value) { return V{std::trunc(value[0]), std::trunc(value[1])}; }
inline V floored(V value) { return V{std::floor(value[0]), std::floor(value[1])}; }
inline V to_float(V value) { return V{static_cast<float>(value[0]), static_cast<float>(value[1])}; }

}  // namespace

#include "accumulate_lanes.h"

const AccumulatingPath *accumulating_portable() { return &PATH; }

#else

const AccumulatingPath *accumulating_portable() { return nullptr; }

#endif
