// An instruction-set path: its innermost loops, reached through pointers. Everything else is compiled once.
#pragma once

#include <cstdint>

#include "rule.h"

// `steps` products join a tile of accumulators: acc[row][column] = round(a[k][row] * b[k][column] + acc[row][column]),
// k ascending. The operands are packed panels, k by rows of the tile and k by columns of the tile; acc has the row
// pitch of a full tile. For dot products both panels are k by columns, and there is one row.
using Chain = void (*)(int64_t steps, const void *a, const void *b, void *acc, const Rule &rule);

// total[i] = round(partial[i] * factor + total[i]).
using Join = void (*)(int64_t count, const float *partial, float *total, float factor, const Rule &rule);

// What steps did (NUMERICS section 11): for each sum of a tile how often each event occurred, and the largest finite
// magnitude that a step left. The rows are as far apart as those of the tile.
struct Tally {
#define CBFLOAT_COUNT(event) uint32_t *event;
    CBFLOAT_EVENTS(CBFLOAT_COUNT)
#undef CBFLOAT_COUNT
    float *largest;
    bool by_row;  // only the sums along a row matter

    Tally at(int64_t offset) const {
#define CBFLOAT_MOVED(event) event + offset,
        return {CBFLOAT_EVENTS(CBFLOAT_MOVED) largest + offset, by_row};
#undef CBFLOAT_MOVED
    }
};

// A chain and a join that count; they serve any number of rows and columns of a tile.
using CountedChain = void (*)(int rows, int columns, bool dot, int64_t steps, const void *a, const void *b, void *acc,
                              const Rule &rule, const Tally &tally);
using CountedJoin = void (*)(int64_t count, const float *partial, float *total, float factor, const Rule &rule,
                             const Tally &tally);

struct Counted {
    CountedChain chain;
    CountedChain tiny_chain;  // in its place where a sum below the smallest normal value may be inexact
    CountedJoin join;
};

struct Tiles {
    int rows, columns;    // of a full tile
    int vector;           // columns that one vector holds
    int element_bytes;    // of operands and accumulators: 4 (float) or 2 (half)
    Rounding rounding;    // the environment in which its functions run
    const Chain *chains;  // [rows - 1][vectors - 1]
    const Chain *dots;    // [vectors - 1]
    Join join;            // of float accumulators of the same kind, null for halves
    const Counted *counted = nullptr;  // null where nothing counts in these tiles

    int vectors() const { return columns / vector; }
    Chain chain(int tile_rows, int used_columns, bool dot) const {
        const int last = (used_columns + vector - 1) / vector - 1;
        return dot ? dots[last] : chains[(tile_rows - 1) * vectors() + last];
    }
};

// Flat arrays. `exponent` multiplies the values by 2^exponent, exactly; the caller knows that they stay floats.
struct Arrays {
    Rounding rounding;
    void (*encode)(const Format &, int64_t count, const float *values, void *codes);
    void (*encode_double)(const Format &, int64_t count, const double *values, void *codes);
    void (*quantize)(const Format &, int64_t count, const float *values, float *rounded, int exponent);
    void (*quantize_double)(const Format &, int64_t count, const double *values, float *rounded);
    void (*decode)(const Format &, int64_t count, const void *codes, float *values, int exponent);

    // Nothing of float itself is rounded to odd.
    Rounding rounding_for(const Format &format) const { return format.is_float() ? Rounding::nearest : rounding; }
};

// The tiles of one rounding mode; null where a path has none.
struct InMode {
    const Tiles *generic;         // any format, unscaled floats
    const Tiles *single;          // accumulators in float; no result is beyond the largest finite value
    const Tiles *single_limited;  // accumulators in float
    const Tiles *scaled;          // short formats, scaled; no result is beyond the largest finite value
    const Tiles *scaled_limited;  // short formats, scaled
    const Tiles *half;            // native float16
    void (*convert)(int64_t count, float *values, const Rule &rule);  // a row of values, into the format of the rule
};

constexpr int64_t LANES = 16;  // a multiple of every path's vector

struct Path {
    const Arrays *plain;          // any format
    const Arrays *fast;           // float and short formats, null if there is nothing faster
    float (*largest)(int64_t count, const float *values);  // largest magnitude; infinity if one is infinite or NaN
    float (*smallest)(int64_t count, const float *values);  // smallest magnitude but 0; infinity or NaN if there is none
    // sums[i] = the chain of fp32 steps from `start`, to nearest even, over factors[k] * rows[k][i]; whole vectors.
    void (*slide)(int64_t steps, const float *factors, const float *const *rows, float start, int64_t count, float *sums);
    // In LANES chains at once: sums[e] goes on through factors[k] * rows[e][k], the rows' elements `pitch` floats apart.
    void (*correlate)(int64_t steps, const float *factors, int64_t elements, const float *const *rows, int64_t pitch,
                      float *sums);
    InMode modes[MODES];
    InMode flushed{};  // to nearest even, where subnormals are flushed

    InMode &in(Mode mode) { return modes[static_cast<int>(mode)]; }
    const InMode &in(Mode mode) const { return modes[static_cast<int>(mode)]; }
    const Arrays &arrays(const Format &format) const {
        return fast && (format.is_float() || format.is_short()) ? *fast : *plain;
    }
};

// The path of a number of kernels.h.
const Path *path_numbered(int path);

const Path *portable_path();
const Path *avx2_path();  // null where the compiler has no such path; so the others
const Path *avx512_path();
const Path *avx512fp16_path();
