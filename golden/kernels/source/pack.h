// Moving elements of 2 or 4 bytes between strided arrays and contiguous panels.
#pragma once

#include <cstdint>
#include <cstring>

#if defined(__SSE2__)
#include <immintrin.h>
#endif

namespace packing {

// to[k][lane] = from[lane][k] for four of each.
inline void transpose_4x4(const uint32_t *from, int64_t from_pitch, uint32_t *to, int64_t to_pitch) {
#if defined(__SSE2__)
    __m128 row[4];
    for (int lane = 0; lane < 4; lane++)
        row[lane] = _mm_loadu_ps(reinterpret_cast<const float *>(from + lane * from_pitch));
    _MM_TRANSPOSE4_PS(row[0], row[1], row[2], row[3]);
    for (int k = 0; k < 4; k++) _mm_storeu_ps(reinterpret_cast<float *>(to + k * to_pitch), row[k]);
#else
    for (int lane = 0; lane < 4; lane++)
        for (int k = 0; k < 4; k++) to[k * to_pitch + lane] = from[lane * from_pitch + k];
#endif
}

inline void transpose_4x4(const uint16_t *from, int64_t from_pitch, uint16_t *to, int64_t to_pitch) {
    for (int lane = 0; lane < 4; lane++)
        for (int k = 0; k < 4; k++) to[k * to_pitch + lane] = from[lane * from_pitch + k];
}

template <class Element>
void interleave(const Element *from, int64_t lane_stride, int64_t lanes, int64_t k_stride, int64_t depth, int64_t width,
                Element *to) {
    if (lanes < width) std::memset(to, 0, static_cast<size_t>(depth * width) * sizeof(Element));
    if (lane_stride == 1) {
        for (int64_t k = 0; k < depth; k++)
            std::memcpy(to + k * width, from + k * k_stride, static_cast<size_t>(lanes) * sizeof(Element));
        return;
    }
    constexpr int64_t LINE = 64 / sizeof(Element);  // of k at once: a cache line of each lane, if k is contiguous
    for (int64_t k0 = 0; k0 < depth; k0 += LINE) {
        const int64_t k1 = k0 + LINE < depth ? k0 + LINE : depth;
        int64_t lane = 0;
        if (k_stride == 1 && k1 - k0 == LINE)
            for (; lane + 4 <= lanes; lane += 4)
                for (int64_t k = k0; k < k1; k += 4)
                    transpose_4x4(from + lane * lane_stride + k, lane_stride, to + k * width + lane, width);
        for (; lane < lanes; lane++)
            for (int64_t k = k0; k < k1; k++) to[k * width + lane] = from[lane * lane_stride + k * k_stride];
    }
}

// to[k][lane] = from[lane_table[lane] + k_table[k]]; lanes that are neighbours in memory are copied at once.
template <class Element>
void interleave_indexed(const Element *from, const int64_t *lane_table, int64_t lanes, const int64_t *k_table,
                        int64_t depth, int64_t width, Element *to) {
    if (lanes < width) std::memset(to, 0, static_cast<size_t>(depth * width) * sizeof(Element));
    const auto run_from = [&](int64_t lane) {
        int64_t end = lane + 1;
        while (end < lanes && lane_table[end] == lane_table[end - 1] + 1) end++;
        return end - lane;
    };
    for (int64_t lane = 0, run; lane < lanes; lane += run) {
        run = run_from(lane);
        const Element *const source = from + lane_table[lane];
        if (run < 8)
            for (int64_t k = 0; k < depth; k++)
                for (int64_t i = 0; i < run; i++) to[k * width + lane + i] = source[k_table[k] + i];
        else
            for (int64_t k = 0; k < depth; k++)
                std::memcpy(to + k * width + lane, source + k_table[k], static_cast<size_t>(run) * sizeof(Element));
    }
}

template <class Element>
void copy_strided(const Element *from, int64_t from_stride, int64_t count, Element *to, int64_t to_stride) {
    if (from_stride == 1 && to_stride == 1)
        std::memcpy(to, from, static_cast<size_t>(count) * sizeof(Element));
    else
        for (int64_t i = 0; i < count; i++) to[i * to_stride] = from[i * from_stride];
}

}  // namespace packing

// to[k][lane] = from[lane * lane_stride + k * k_stride] for `lanes` lanes; the other lanes up to `width` are 0.
inline void interleave(const char *from, int64_t lane_stride, int64_t lanes, int64_t k_stride, int64_t depth,
                       int64_t width, int bytes, char *to) {
    if (bytes == 2)
        packing::interleave(reinterpret_cast<const uint16_t *>(from), lane_stride, lanes, k_stride, depth, width,
                            reinterpret_cast<uint16_t *>(to));
    else
        packing::interleave(reinterpret_cast<const uint32_t *>(from), lane_stride, lanes, k_stride, depth, width,
                            reinterpret_cast<uint32_t *>(to));
}

// to[k][lane] = from[lane_table[lane] + k_table[k]], likewise.
inline void interleave_indexed(const char *from, const int64_t *lane_table, int64_t lanes, const int64_t *k_table,
                               int64_t depth, int64_t width, int bytes, char *to) {
    if (bytes == 2)
        packing::interleave_indexed(reinterpret_cast<const uint16_t *>(from), lane_table, lanes, k_table, depth, width,
                                    reinterpret_cast<uint16_t *>(to));
    else
        packing::interleave_indexed(reinterpret_cast<const uint32_t *>(from), lane_table, lanes, k_table, depth, width,
                                    reinterpret_cast<uint32_t *>(to));
}

inline void gather(const char *from, int64_t stride, int64_t count, int bytes, char *to) {
    if (bytes == 2)
        packing::copy_strided(reinterpret_cast<const uint16_t *>(from), stride, count, reinterpret_cast<uint16_t *>(to),
                              1);
    else
        packing::copy_strided(reinterpret_cast<const uint32_t *>(from), stride, count, reinterpret_cast<uint32_t *>(to),
                              1);
}

inline void scatter(const void *from, int64_t count, int bytes, char *to, int64_t stride) {
    if (bytes == 2)
        packing::copy_strided(static_cast<const uint16_t *>(from), 1, count, reinterpret_cast<uint16_t *>(to), stride);
    else
        packing::copy_strided(static_cast<const uint32_t *>(from), 1, count, reinterpret_cast<uint32_t *>(to), stride);
}
