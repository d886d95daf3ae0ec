// Flat arrays: values to codes and back, in pieces for several threads.
#include <algorithm>

#include "environment.h"
#include "kernels.h"
#include "path.h"
#include "pool.h"

namespace {

constexpr int64_t PIECE = 1 << 16;

template <class Work>
void in_pieces(int threads, int64_t count, const Work &work) {
    run_pieces(threads, (count + PIECE - 1) / PIECE, [&](int64_t piece) {
        const int64_t first = piece * PIECE;
        work(first, std::min(PIECE, count - first));
    });
}

template <class Element, class Pointer>
auto at(Pointer *pointer, int64_t index) {
    return static_cast<Element *>(pointer) + index;
}

const char *code_at(const void *codes, const Format &format, int64_t index) {
    return static_cast<const char *>(codes) + index * format.code_bytes();
}

char *code_at(void *codes, const Format &format, int64_t index) {
    return static_cast<char *>(codes) + index * format.code_bytes();
}

}  // namespace

void cbfloat_encode(int path, int threads, int64_t number, int64_t count, const void *values, int value_bits,
                    void *codes) {
    const Format format = Format::from_number(number);
    const Arrays &arrays = path_numbered(path)->arrays(format);
    in_pieces(threads, count, [&](int64_t first, int64_t size) {
        const Environment environment(arrays.rounding_for(format));
        char *to = code_at(codes, format, first);
        if (value_bits == 64)
            arrays.encode_double(format, size, at<const double>(values, first), to);
        else
            arrays.encode(format, size, at<const float>(values, first), to);
    });
}

void cbfloat_quantize(int path, int threads, int64_t number, int64_t count, const void *values, int value_bits,
                      float *rounded) {
    const Format format = Format::from_number(number);
    const Arrays &arrays = path_numbered(path)->arrays(format);
    in_pieces(threads, count, [&](int64_t first, int64_t size) {
        const Environment environment(arrays.rounding_for(format));
        if (value_bits == 64)
            arrays.quantize_double(format, size, at<const double>(values, first), rounded + first);
        else
            arrays.quantize(format, size, at<const float>(values, first), rounded + first, 0);
    });
}

void cbfloat_decode(int path, int threads, int64_t number, int64_t count, const void *codes, float *values) {
    const Format format = Format::from_number(number);
    const Arrays &arrays = path_numbered(path)->arrays(format);
    in_pieces(threads, count, [&](int64_t first, int64_t size) {
        const Environment environment(arrays.rounding_for(format));
        arrays.decode(format, size, code_at(codes, format, first), values + first, 0);
    });
}

void cbfloat_convert(int path, int threads, int64_t source_number, int64_t destination_number, int64_t count,
                     const void *codes, void *converted) {
    const Format source = Format::from_number(source_number), destination = Format::from_number(destination_number);
    const Arrays &from = path_numbered(path)->arrays(source), &to = path_numbered(path)->arrays(destination);
    in_pieces(threads, count, [&](int64_t first, int64_t size) {
        constexpr int64_t STEP = 1024;  // values that stay in the first-level cache
        alignas(64) float values[STEP];
        Environment environment(Rounding::nearest);
        for (int64_t i = first; i < first + size; i += STEP) {
            const int64_t some = std::min(STEP, first + size - i);
            environment.change(from.rounding_for(source));
            from.decode(source, some, code_at(codes, source, i), values, 0);
            environment.change(to.rounding_for(destination));
            to.encode(destination, some, values, code_at(converted, destination, i));
        }
    });
}
