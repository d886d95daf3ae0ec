// Calls of the kernels' C interface, to run under sanitizers: every array lies in memory of exactly its size, so that
// what is read or written beside it is seen. Every path must give the bits of the portable one.
//
//   driver products | arrays | threads | late
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#include "kernels.h"

namespace {

uint64_t state = 88172645463325252ull;

uint32_t random_bits() {  // xorshift
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return static_cast<uint32_t>(state >> 16);
}

int64_t below(int64_t limit) { return static_cast<int64_t>(random_bits() % static_cast<uint64_t>(limit)); }

const int64_t FORMATS[] = {CBFLOAT_FORMAT(6, 9, 31), CBFLOAT_FORMAT(5, 10, 15), CBFLOAT_FORMAT(8, 7, 127),
                           CBFLOAT_FORMAT(8, 23, 127), CBFLOAT_FORMAT(4, 3, 7), CBFLOAT_FORMAT(7, 23, 63)};
const int KINDS = sizeof FORMATS / sizeof *FORMATS;

int width(int64_t format) { return static_cast<int>(1 + (format & 255) + (format >> 8 & 255)); }
size_t bytes_of(int64_t format, bool as_values) { return as_values || width(format) > 16 ? 4 : 2; }

// `count` elements, codes of the format or floats, and not a byte more.
std::vector<char> elements(int64_t count, int64_t format, bool as_values) {
    const size_t size = bytes_of(format, as_values);
    std::vector<char> memory(static_cast<size_t>(count) * size);
    for (int64_t i = 0; i < count; i++) {
        const uint32_t bits = as_values ? random_bits() : random_bits() >> (32 - width(format));
        std::memcpy(memory.data() + static_cast<size_t>(i) * size, &bits, size);
    }
    memory.shrink_to_fit();
    return memory;
}

// A matrix of `rows` by `columns`, dense or with gaps, forwards or backwards, by rows or by columns.
struct Operand {
    std::vector<char> memory;
    std::vector<int64_t> offsets;
    cbfloat_matrix matrix;

    Operand(int64_t batches, int64_t rows, int64_t columns, int64_t format, bool as_values) {
        const int64_t gap = 1 + below(3);
        const bool by_rows = below(2), backwards = below(2), shared = below(2);
        int64_t row = by_rows ? columns * gap : gap, column = by_rows ? gap : rows * gap;
        const int64_t span = rows * columns * gap - gap + 1;
        memory = elements(span + (shared ? 0 : (batches - 1) * span), format, as_values);
        int64_t start = 0;
        if (backwards) start = (rows - 1) * row + (columns - 1) * column, row = -row, column = -column;
        for (int64_t batch = 0; batch < batches; batch++) offsets.push_back(start + (shared ? 0 : batch * span));
        matrix = {memory.data(), row, column, offsets.data()};
    }
};

void fail(const char *what, int path) {
    std::printf("%s: path %d differs from the portable one\n", what, path);
    std::exit(5);
}

void multiply(int64_t m, int64_t n, int64_t k, int64_t batches, int64_t threads) {
    const bool dot = below(4) == 0, as_values = below(3) == 0;
    const int64_t operand = FORMATS[below(KINDS)];
    const int64_t chunk = below(3) ? 1 + below(below(2) ? 40 : 400) : 0;
    const int64_t inner = below(2) ? operand : FORMATS[below(KINDS)], outer = below(2) ? FORMATS[3] : FORMATS[below(KINDS)];
    if (dot) m = 1;
    Operand a(batches, dot ? k : m, dot ? n : k, operand, as_values), b(batches, k, n, operand, as_values);
    Operand initial(batches, m, n, outer, as_values);
    const int64_t destination = FORMATS[below(KINDS)];
    const size_t size = static_cast<size_t>(batches * m * n) * bytes_of(destination, as_values);
    if (below(2)) initial.matrix.data = nullptr;
    // Random bits: as many as fit beside the 23 fraction bits of a float.
    const cbfloat_rounding modes = {below(CBFLOAT_STOCHASTIC + 1), below(CBFLOAT_STOCHASTIC + 1), random_bits(), below(9),
                                    1 + below(28)};
    const cbfloat_rounding *rounding = below(3) ? &modes : nullptr;
    // Every other product counts, in one form, some or all rows.
    const int64_t form = below(3), places[] = {batches * m * n, batches * m, 1};
    std::vector<uint8_t> rows(static_cast<size_t>(m));
    for (auto &row : rows) row = below(2) != 0;
    const bool counts = below(2), some = below(2);
    std::vector<int64_t> first_counts;
    std::vector<char> first;
    for (int path = CBFLOAT_PORTABLE; path <= CBFLOAT_AVX512FP16; path++) {
        if (!cbfloat_path_available(path)) continue;
        std::vector<char> result(size);
        cbfloat_product product = {path,    threads, dot ? CBFLOAT_DOT : CBFLOAT_MATMUL, as_values, operand, inner, outer,
                                   destination, chunk, batches, m, n, k, a.matrix, b.matrix, initial.matrix,
                                   result.data()};
        std::vector<int64_t> found(static_cast<size_t>(11 * places[form]));
        const cbfloat_counting counting = {form, some ? rows.data() : nullptr, found.data(), &found[10 * places[form]]};
        if (cbfloat_multiply_counted(&product, nullptr, nullptr, rounding, counts ? &counting : nullptr)) std::exit(6);
        if (path == CBFLOAT_PORTABLE) first = result, first_counts = found;
        if (found != first_counts) fail("counts", path);
        if (result != first) fail("product", path);
    }
}

// Planes of three axes, what windows over them give, and back.
void slide(int64_t threads) {
    int64_t input[3], length[3], step[3], gap[3], before[3], output[3], elements_of[3] = {1, 1, 1};
    for (int axis = 0; axis < 3; axis++) {
        length[axis] = 1 + below(3), step[axis] = 1 + below(3), gap[axis] = 1 + below(3), before[axis] = below(6) - 2;
        output[axis] = 1 + below(12);
        const int64_t reach = (output[axis] - 1) * step[axis] + (length[axis] - 1) * gap[axis] + 1;
        input[axis] = reach - before[axis] + below(5) - 2;
        if (input[axis] < 1) input[axis] = 1;
        elements_of[0] *= input[axis], elements_of[1] *= length[axis], elements_of[2] *= output[axis];
    }
    const int64_t kernels = 1 + below(4), planes = kernels * (1 + below(3));
    const int64_t operand = FORMATS[below(KINDS)], result_format = FORMATS[below(KINDS)], single = FORMATS[3];
    const bool weighted = below(3) != 0, started = below(2);
    std::vector<char> weights = elements(kernels * elements_of[1], single, true);
    float *const factors = reinterpret_cast<float *>(weights.data());
    cbfloat_quantize(CBFLOAT_PORTABLE, 1, operand, kernels * elements_of[1], factors, 32, factors);
    const std::vector<char> initial = elements(kernels, single, true), x = elements(planes * elements_of[0], single, true);
    const std::vector<char> y = elements(planes * elements_of[2] * (weighted ? 1 : elements_of[1]), single, true);
    const size_t forward = static_cast<size_t>(planes * elements_of[2]), size = forward + static_cast<size_t>(planes * elements_of[0]);
    std::vector<char> first;
    for (int path = CBFLOAT_PORTABLE; path <= CBFLOAT_AVX512FP16; path++) {
        if (!cbfloat_path_available(path)) continue;
        std::vector<char> there(forward * 4), back((size - forward) * 4);
        cbfloat_windows windows = {};
        windows.path = path, windows.threads = threads, windows.planes = planes, windows.kernels = kernels;
        windows.operand = operand, windows.result_format = result_format;
        for (int axis = 0; axis < 3; axis++) {
            windows.input[axis] = input[axis], windows.length[axis] = length[axis], windows.step[axis] = step[axis];
            windows.gap[axis] = gap[axis], windows.before[axis] = before[axis], windows.output[axis] = output[axis];
        }
        windows.values = reinterpret_cast<const float *>(x.data()), windows.weights = factors;
        windows.initial = started ? reinterpret_cast<const float *>(initial.data()) : nullptr;
        windows.result = reinterpret_cast<float *>(there.data());
        if (cbfloat_slide(&windows)) std::exit(6);
        std::vector<char> of_kernels(weights.size());
        windows.result = reinterpret_cast<float *>(of_kernels.data());
        windows.weights = reinterpret_cast<const float *>(y.data());
        if (cbfloat_correlate(&windows)) std::exit(6);
        windows.weights = factors;
        for (int axis = 0; axis < 3; axis++) windows.input[axis] = output[axis], windows.output[axis] = input[axis];
        windows.values = reinterpret_cast<const float *>(y.data()), windows.initial = nullptr;
        if (!weighted) windows.weights = nullptr;
        windows.result = reinterpret_cast<float *>(back.data());
        if (cbfloat_overlap(&windows)) std::exit(6);
        const int64_t count = static_cast<int64_t>(size - forward);
        cbfloat_quantize(path, 1, single, count, windows.result, 32, windows.result);  // to the canonical NaN
        there.insert(there.end(), back.begin(), back.end());
        there.insert(there.end(), of_kernels.begin(), of_kernels.end());
        if (path == CBFLOAT_PORTABLE) first = there;
        if (there != first) fail("windows", path);
    }
}

void products() {
    for (int64_t round = 0; round < 200; round++) slide(1 + below(3));
    for (int64_t round = 0; round < 300; round++)
        multiply(1 + below(20), 1 + below(round % 3 ? 40 : 140), 1 + below(round % 5 ? 40 : 600), 1 + below(3), 1);
    for (int64_t round = 0; round < 6; round++) multiply(100 + below(60), 100 + below(60), 60, 1, 2 + below(2));
}

void arrays() {
    for (int round = 0; round < 120; round++) {
        const int64_t from = FORMATS[below(KINDS)], to = FORMATS[below(KINDS)];
        const int64_t count = round < 70 ? round : 65530 + below(20);
        const bool wide = below(2);
        const std::vector<char> codes = elements(count, from, false), values = elements(wide ? 2 * count : count, to, true);
        const size_t size = static_cast<size_t>(count), code_size = bytes_of(to, false);
        std::vector<char> first;
        for (int path = CBFLOAT_PORTABLE; path <= CBFLOAT_AVX512FP16; path++) {
            if (!cbfloat_path_available(path)) continue;
            std::vector<char> converted(size * code_size), decoded(size * 4), encoded(size * code_size), rounded(size * 4);
            const int threads = 1 + static_cast<int>(below(3));
            cbfloat_convert(path, threads, from, to, count, codes.data(), converted.data());
            cbfloat_decode(path, threads, from, count, codes.data(), reinterpret_cast<float *>(decoded.data()));
            cbfloat_encode(path, threads, to, count, values.data(), wide ? 64 : 32, encoded.data());
            cbfloat_quantize(path, threads, to, count, values.data(), wide ? 64 : 32,
                             reinterpret_cast<float *>(rounded.data()));
            std::vector<char> all;
            for (const auto *part : {&converted, &decoded, &encoded, &rounded})
                all.insert(all.end(), part->begin(), part->end());
            if (path == CBFLOAT_PORTABLE) first = all;
            if (all != first) fail("array", path);
        }
    }
}

void encode(int64_t pieces) {
    std::vector<float> values(static_cast<size_t>(pieces) << 16, 1.5f);
    std::vector<uint16_t> codes(values.size());
    cbfloat_encode(CBFLOAT_PORTABLE, 4, FORMATS[0], static_cast<int64_t>(values.size()), values.data(), 32, codes.data());
    for (uint16_t code : codes)
        if (code != 0x3F00) std::exit(7);
}

// Calls of several threads each, close upon each other, and from two callers at once.
void threads() {
    for (int64_t round = 0; round < 10; round++) encode(2 + round % 3);
    std::thread other([] {
        for (int64_t round = 0; round < 10; round++) encode(3);
    });
    for (int64_t round = 0; round < 10; round++) encode(2);
    other.join();
    for (int round = 0; round < 2; round++) multiply(150, 140, 60, 1, 3);
}

// Calls far apart, each from another stack: a helper that is late must not find a call's work where the last one's lay.
void late() {
    for (int round = 0; round < 4; round++) {
        if (round % 2)
            std::thread([] { encode(2); }).join();
        else
            encode(2);
        std::this_thread::sleep_for(std::chrono::milliseconds(250));
    }
}

}  // namespace

int main(int count, char **arguments) {
    for (int i = 1; i < count; i++) {
        if (!std::strcmp(arguments[i], "products")) products();
        if (!std::strcmp(arguments[i], "arrays")) arrays();
        if (!std::strcmp(arguments[i], "threads")) threads();
        if (!std::strcmp(arguments[i], "late")) late();
    }
    std::puts("done");
    return 0;
}
