// An operand on its way into panels: rounded once, scaled, transposed through shared memory.
#pragma once

#include "rounding.h"
#include "threads.h"

namespace {

constexpr int PIECE = 2 * STAGE, WIDEST = 128;  // products of a block; lanes of the widest panel
constexpr int PER_STAGE = THREADS / 2;          // threads that write a stage
constexpr int FETCHED = 4;                      // elements of a thread that are on their way from memory at once
constexpr int64_t OUTSIDE = -1 - 0x7FFFFFFFFFFFFFFF;

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

// The elements at places that count from the first, all asked for before any is used; 0 where a place is OUTSIDE.
template <int COUNT>
INLINE void load_values(Memory memory, const void *data, int64_t first, const int64_t (&places)[COUNT],
                        float (&values)[COUNT]) {
    if (memory == Memory::float32) {
        const float *const from = static_cast<const float *>(data) + first;
        UNROLL
        for (int i = 0; i < COUNT; i++) values[i] = places[i] == OUTSIDE ? 0 : from[places[i]];
        return;
    }
    const uint16_t *const from = static_cast<const uint16_t *>(data) + first;
    uint16_t codes[COUNT];
    UNROLL
    for (int i = 0; i < COUNT; i++) codes[i] = places[i] == OUTSIDE ? uint16_t{0} : from[places[i]];
    UNROLL
    for (int i = 0; i < COUNT; i++) values[i] = load_value(memory, codes, i);
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
    const bool halves = packing.halves != 0, brain = packing.target.exponent_bits == BRAIN.exponent_bits;
    // Of a value that the format has.
    const auto code = [&](float x) { return brain ? static_cast<uint16_t>(bits_of(x) >> 16) : half_code(x); };

    Threads<PackingState> threads;
    threads.each([&](PackingState &, int thread) {
        // A thread walks over lanes at one k, or over k at one lane.
        const int k = along_k ? thread % PIECE : thread >> shift, lane = along_k ? thread / PIECE : thread & (width - 1);
        const int nearest = along_k ? lane : k, end = along_k ? width : PIECE;
        const int step = along_k ? THREADS / PIECE : THREADS >> shift, pitches = along_k ? 1 : pitch;
        const int64_t left = along_k ? packing.lanes - lane0 : packing.k - k0, start = along_k ? lane0 : k0;
        const bool is_inside = along_k ? k0 + k < packing.k : lane0 + lane < packing.lanes;
        const int limit = !is_inside ? 0 : left < end ? static_cast<int>(left) : end;
        const int64_t fixed = !is_inside ? 0 : along_k ? column_offset(source, k0 + k) : row_offset(source, lane0 + lane);
        float *const to = shared.values + k * pitch + lane - nearest * pitches;
        for (int i = nearest; i < end; i += FETCHED * step) {
            int64_t places[FETCHED];
            UNROLL
            for (int j = 0; j < FETCHED; j++) {
                const int64_t at = start + i + j * step;
                if (i + j * step < limit)
                    places[j] = fixed + (along_k ? row_offset(source, at) : column_offset(source, at));
                else
                    places[j] = OUTSIDE;
            }
            float values[FETCHED];
            load_values(source.memory, source.data, first, places, values);
            convert.convert(values);
            UNROLL
            for (int j = 0; j < FETCHED; j++)
                if (i + j * step < end) to[(i + j * step) * pitches] = values[j];
        }
    });
    threads.each([&](PackingState &, int thread) {
        const int stage = thread / PER_STAGE;
        const int64_t k1 = k0 + stage * STAGE, begin = ((matrix * panels + panel) * packing.depth + k1) * width;
        uint32_t largest = 0;
        if (k1 < packing.depth)
            UNROLL_BY(4)
            for (int i = thread % PER_STAGE * 2; i < STAGE * width; i += PER_STAGE * 2) {
                const float *const pair = shared.values + (stage * STAGE + (i >> shift)) * pitch + (i & (width - 1));
                if (halves)
                    *reinterpret_cast<Group<uint16_t, 2> *>(static_cast<uint16_t *>(packing.panels) + begin + i) = {
                        {code(pair[0]), code(pair[1])}};
                else
                    *reinterpret_cast<Group<float, 2> *>(static_cast<float *>(packing.panels) + begin + i) = {
                        {pair[0], pair[1]}};
                UNROLL
                for (int j = 0; j < 2; j++) {
                    const uint32_t magnitude = bits_of(pair[j]) & MAGNITUDE;
                    largest = magnitude > largest ? magnitude : largest;
                }
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
