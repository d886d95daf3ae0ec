// Where a thread's results lie: in the tile, in the matrix, in memory.
#pragma once

#include "packing.h"

namespace {

constexpr int WARP_ROWS = 4, WARP_COLUMNS = 8;      // threads of a warp
constexpr int BLOCK_ROWS = 4, BLOCK_COLUMNS = 2;    // warps of a block
constexpr int SIDE_THREADS = WARP_ROWS * BLOCK_ROWS;
static_assert(SIDE_THREADS == WARP_COLUMNS * BLOCK_COLUMNS, "tiles are squares");
static_assert(SIDE_THREADS * SIDE_THREADS == THREADS, "every thread has results");

// A thread has P rows by P columns, in groups of GROUP neighbours: a group, of 16 bytes at most, is read from shared memory
// at once, and the groups of a warp's threads lie side by side, in different banks.
template <int P, int ELEMENT_BYTES>
struct Layout {
    static constexpr int SIDE = SIDE_THREADS * P, MOST = 16 / ELEMENT_BYTES, GROUP = P < MOST ? P : MOST;

    explicit INLINE Layout(int thread)
        : line(thread / 32 / BLOCK_COLUMNS * WARP_ROWS + thread % 32 / WARP_COLUMNS),
          row0(row_of(line, 0)),
          column0(thread / 32 % BLOCK_COLUMNS * WARP_COLUMNS * P + thread % WARP_COLUMNS * GROUP) {}
    INLINE int row(int i) const { return row_of(line, i); }
    INLINE int column(int j) const { return column0 + j / GROUP * (GROUP * WARP_COLUMNS) + j % GROUP; }
    // The i-th row of the threads of a line.
    static INLINE int row_of(int line, int i) {
        return line / WARP_ROWS * WARP_ROWS * P + line % WARP_ROWS * GROUP + i / GROUP * (GROUP * WARP_ROWS) + i % GROUP;
    }

    int line;  // of threads that have the same rows
    int row0, column0;
};

constexpr int64_t SWATH = 8;  // rows of tiles that are run together, so that their panels stay in the cache

// The tile of a block.
struct TilePlace {
    INLINE TilePlace(const Product &product, int64_t number) {
        const int64_t tiles = product.row_tiles * product.column_tiles, swath = SWATH * product.column_tiles;
        batch = number / tiles;
        const int64_t rest = number % tiles, first = rest / swath * SWATH;
        const int64_t height = product.row_tiles - first < SWATH ? product.row_tiles - first : SWATH;
        row = first + rest % swath % height;
        column = rest % swath / height;
    }
    int64_t batch, row, column;
};

}  // namespace
