// An operand on its way into panels: rounded once, scaled, transposed through shared memory.
#pragma once

#include "rounding.h"
#include "threads.h"

namespace {

constexpr int PIECE = 2 * STAGE, WIDEST = 128;  // products of a block; lanes of the widest panel
constexpr int PER_STAGE = THREADS / 2;          // threads that write a stage

// A padded row keeps the threads that walk down a column in different banks.
struct PackingMemory {
    float values[PIECE * (WIDEST + 1)];
    uint32_t largest[THREADS];
};

// Where a matrix of a batch begins: `number` counts along axes of these lengths, the last of which varies fastest.
INLINE int64_t along_axes(const int64_t (&lengths)[AXES], const int64_t (&strides)[AXES], int64_t number) {
    int64_t offset = 0;
    for (int axis = AXES - 1; axis >= 0; axis--) {
        offset += number % lengths[axis] * strides[axis];
        number /= lengths[axis];
    }
    return offset;
}

INLINE int64_t row_offset(const Source &source, int64_t i) {
    return source.rows ? source.rows[i] : i * source.row_stride;
}

INLINE int64_t column_offset(const Source &source, int64_t j) {
    return source.columns ? source.columns[j] : j * source.column_stride;
}

struct PackingState {};

// A block: PIECE products of one panel of one matrix.
INLINE void pack_block(const Packing &packing, Block block, PackingMemory &shared) {
    const Source &source = packing.source;
    const int width = static_cast<int>(packing.width), pitch = width + 1;
    const int shift = width == 128 ? 7 : width == 64 ? 6 : 5;
    const int64_t pieces = (packing.depth + PIECE - 1) / PIECE, panels = (packing.lanes + width - 1) / width;
    const int64_t piece = block.number % pieces, panel = block.number / pieces % panels;
    const int64_t matrix = block.number / pieces / panels;
    const int64_t first = along_axes(packing.lengths, source.axes, matrix);
    const int64_t k0 = piece * PIECE, lane0 = panel * width;
    // Neighbouring threads read neighbouring elements, if there are any.
    const bool along_k = !source.columns && source.column_stride == 1;
    const Converter convert(packing.target);
    const bool halves = packing.halves != 0;

    Threads<PackingState> threads;
    threads.each([&](PackingState &, int thread) {
        UNROLL_BY(4)
        for (int i = thread; i < PIECE * width; i += THREADS) {
            const int k = along_k ? i % PIECE : i >> shift, lane = along_k ? i / PIECE : i & (width - 1);
            float value = 0;
            if (k0 + k < packing.k && lane0 + lane < packing.lanes) {
                const int64_t place = first + row_offset(source, lane0 + lane) + column_offset(source, k0 + k);
                value = convert(load_value(source.memory, source.data, place));
            }
            shared.values[k * pitch + lane] = value;
        }
    });
    threads.each([&](PackingState &, int thread) {
        const int stage = thread / PER_STAGE;
        const int64_t k1 = k0 + stage * STAGE, begin = ((matrix * panels + panel) * packing.depth + k1) * width;
        uint32_t largest = 0;
        if (k1 < packing.depth)
        UNROLL_BY(4)
            for (int i = thread % PER_STAGE; i < STAGE * width; i += PER_STAGE) {
                const float value = shared.values[(stage * STAGE + (i >> shift)) * pitch + (i & (width - 1))];
                if (halves) {
                    const uint32_t bits = bits_of(value);
                    const bool brain = packing.target.exponent_bits == BRAIN.exponent_bits;
                    static_cast<uint16_t *>(packing.panels)[begin + i] =
                        brain ? static_cast<uint16_t>(bits >> 16) : element_code(Memory::float16, value);
                } else {
                    static_cast<float *>(packing.panels)[begin + i] = value;
                }
                const uint32_t magnitude = bits_of(value) & MAGNITUDE;
                largest = magnitude > largest ? magnitude : largest;
            }
        shared.largest[thread] = largest;
    });
    if (!packing.largest) return;
    constexpr int SOME = 8;
    threads.each([&](PackingState &, int thread) {
        if (thread % SOME) return;
        uint32_t largest = shared.largest[thread];
        for (int i = 1; i < SOME; i++) {
            const uint32_t other = shared.largest[thread + i];
            largest = other > largest ? other : largest;
        }
        shared.largest[thread] = largest;
    });
    threads.each([&](PackingState &, int thread) {
        const int64_t stage = piece * (PIECE / STAGE) + thread / PER_STAGE, stages = packing.depth / STAGE;
        if (thread % PER_STAGE || stage >= stages) return;
        uint32_t largest = 0;
        for (int i = 0; i < PER_STAGE; i += SOME) {
            const uint32_t other = shared.largest[thread + i];
            largest = other > largest ? other : largest;
        }
        packing.largest[(matrix * panels + panel) * stages + stage] = largest;
    });
}

}  // namespace
