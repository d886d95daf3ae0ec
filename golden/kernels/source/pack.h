// Moving elements of 2 or 4 bytes between strided arrays and contiguous panels.
#pragma once

#include <cstdint>
#include <cstring>

namespace packing {

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
        for (int64_t lane = 0; lane < lanes; lane++)
            for (int64_t k = k0; k < k1; k++) to[k * width + lane] = from[lane * lane_stride + k * k_stride];
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
