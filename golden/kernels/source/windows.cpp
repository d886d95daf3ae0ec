// Windows that slide over planes and read them in place: chains of fp32 steps along each, and sums where they overlap.
//
// A plane is padded and rounded once. Its rows and columns are split by the steps of the windows, so that the elements
// which one place of a kernel meets are neighbours: vectors of results run over whole planes, ends of rows included,
// where they compute what nobody reads.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <new>

#include "environment.h"
#include "kernels.h"
#include "pack.h"
#include "path.h"
#include "pool.h"
#include "scratch.h"

namespace {

constexpr int64_t STEPS_PER_THREAD = 1 << 18;
constexpr int64_t KEPT_BYTES = 64 << 20;

int64_t product(const int64_t *lengths) { return lengths[0] * lengths[1] * lengths[2]; }
int64_t whole(int64_t count) { return (count + LANES - 1) / LANES * LANES; }
int64_t groups(int64_t count, int64_t size) { return (count + size - 1) / size; }

void round_plane(const Arrays &arrays, const Format &format, int64_t count, const float *from, float *to) {
    const Environment environment(arrays.rounding_for(format));
    arrays.quantize(format, count, from, to, 0);
}

// What the planes of one call have in common.
struct Shape {
    explicit Shape(const cbfloat_windows &windows)
        : given(windows),
          path(*path_numbered(static_cast<int>(windows.path))),
          operand(Format::from_number(windows.operand)),
          result(Format::from_number(windows.result_format)),
          elements(product(windows.length)),
          inputs(product(windows.input)),
          outputs(product(windows.output)) {}

    const cbfloat_windows &given;
    const Path &path;
    const Format operand, result;
    const int64_t elements, inputs, outputs;
};

class Slide : Shape {
public:
    explicit Slide(const cbfloat_windows &windows) : Shape(windows) {
        for (int axis = 0; axis < 3; axis++) {
            padded_[axis] = (given.output[axis] - 1) * given.step[axis] + given.gap[axis] * (given.length[axis] - 1) + 1;
            part_[axis] = groups(padded_[axis], given.step[axis]);
        }
        size_ = part_[0] * given.step[0] * part_[1] * given.step[1] * part_[2] * given.step[2];
        reach_ = (given.output[1] - 1) * part_[2] + given.output[2];
    }

    void run(int64_t first, int64_t last) const {
        static thread_local Scratch scratch;
        const int64_t pointers = groups(elements * int64_t{sizeof(float *)}, sizeof(float));
        float *const memory = static_cast<float *>(scratch.reserve(
            (whole(pointers) + whole(inputs) + whole(size_ + LANES) + whole(reach_)) * int64_t{sizeof(float)}));
        const float **const rows = reinterpret_cast<const float **>(memory);
        float *const rounded = memory + whole(pointers), *const plane = rounded + whole(inputs),
                     *const sums = plane + whole(size_ + LANES);
        std::memset(plane, 0, static_cast<size_t>(whole(size_ + LANES)) * sizeof(float));
        for (int64_t at = first; at < last; at++) {
            round_plane(path.arrays(operand), operand, inputs, given.values + at * inputs, rounded);
            fill(rounded, plane);
            const int64_t kernel = at % given.kernels;
            for (int64_t outer = 0; outer < given.output[0]; outer++) {
                place(plane, outer, rows);
                {
                    const Environment environment(Rounding::nearest);
                    path.slide(elements, given.weights + kernel * elements, rows,
                               given.initial ? given.initial[kernel] : 0.0f, whole(reach_), sums);
                }
                round_plane(path.arrays(result), result, reach_, sums, sums);
                float *const to = given.result + at * outputs + outer * given.output[1] * given.output[2];
                for (int64_t row = 0; row < given.output[1]; row++)
                    std::memcpy(to + row * given.output[2], sums + row * part_[2],
                                static_cast<size_t>(given.output[2]) * sizeof(float));
            }
        }
        scratch.release_above(KEPT_BYTES);
    }

private:
    // Where element (i, j, k) of the padded plane lies: parts that the steps of the windows meet are contiguous.
    int64_t index(int64_t i, int64_t j, int64_t k) const {
        const int64_t *const step = given.step;
        const int64_t part = (i * step[1] + j % step[1]) * step[2] + k % step[2];
        return (part * part_[1] + j / step[1]) * part_[2] + k / step[2];
    }

    void fill(const float *from, float *plane) const {
        const int64_t *const size = given.input, *const before = given.before, step = given.step[2];
        const int64_t begin = std::max<int64_t>(0, -before[2]), end = std::min(size[2], padded_[2] - before[2]);
        for (int64_t i = 0; i < size[0]; i++) {
            if (i + before[0] < 0 || i + before[0] >= padded_[0]) continue;
            for (int64_t j = 0; j < size[1]; j++) {
                if (j + before[1] < 0 || j + before[1] >= padded_[1]) continue;
                const float *const row = from + (i * size[1] + j) * size[2];
                for (int64_t phase = 0; phase < std::min(step, end - begin); phase++) {
                    float *to = plane + index(i + before[0], j + before[1], begin + phase + before[2]);
                    for (int64_t k = begin + phase; k < end; k += step) *to++ = row[k];
                }
            }
        }
    }

    // Where the elements of a kernel meet the first result of a row of planes.
    void place(const float *plane, int64_t outer, const float **rows) const {
        const int64_t *const gap = given.gap;
        for (int64_t i = 0; i < given.length[0]; i++)
            for (int64_t j = 0; j < given.length[1]; j++)
                for (int64_t k = 0; k < given.length[2]; k++)
                    *rows++ = plane + index(outer * given.step[0] + i * gap[0], j * gap[1], k * gap[2]);
    }

    int64_t padded_[3], part_[3], size_, reach_;
};

class Overlap : Shape {
public:
    explicit Overlap(const cbfloat_windows &windows) : Shape(windows) {}

    void run(int64_t first, int64_t last) const {
        static thread_local Scratch scratch;
        float *const rounded = static_cast<float *>(scratch.reserve(2 * whole(inputs) * int64_t{sizeof(float)}));
        float *const products = rounded + whole(inputs);
        std::memset(rounded, 0, static_cast<size_t>(whole(inputs)) * sizeof(float));
        for (int64_t at = first; at < last; at++) {
            float *const sums = given.result + at * outputs;
            std::fill_n(sums, outputs, 0.0f);
            if (given.weights) round_plane(path.arrays(operand), operand, inputs, given.values + at * inputs, rounded);
            const float *const factors = given.weights ? given.weights + at % given.kernels * elements : nullptr;
            int64_t element = 0;
            for (int64_t i = 0; i < given.length[0]; i++)
                for (int64_t j = 0; j < given.length[1]; j++)
                    for (int64_t k = 0; k < given.length[2]; k++, element++) {
                        const float *addends = given.values + (at * elements + element) * inputs;
                        if (factors) addends = multiply(rounded, factors + element, products);
                        const Environment environment(Rounding::nearest);
                        add(addends, i, j, k, sums);
                    }
        }
        scratch.release_above(KEPT_BYTES);
    }

private:
    const float *multiply(const float *values, const float *factor, float *products) const {
        {
            const Environment environment(Rounding::nearest);
            path.slide(1, factor, &values, 0.0f, whole(inputs), products);
        }
        round_plane(path.arrays(result), result, inputs, products, products);
        return products;
    }

    // The first and the end of the positions at which a place of the kernel is within the result.
    void limits(int axis, int64_t offset, int64_t &first, int64_t &end) const {
        const int64_t step = given.step[axis];
        first = offset >= 0 ? 0 : groups(-offset, step);
        end = offset >= given.output[axis] ? 0 : std::min(given.input[axis], (given.output[axis] - 1 - offset) / step + 1);
    }

    void add(const float *addends, int64_t i, int64_t j, int64_t k, float *sums) const {
        const int64_t place[3] = {i, j, k}, *const counts = given.input, *const step = given.step;
        int64_t offset[3], first[3], end[3];
        for (int axis = 0; axis < 3; axis++) {
            offset[axis] = place[axis] * given.gap[axis] - given.before[axis];
            limits(axis, offset[axis], first[axis], end[axis]);
        }
        for (int64_t x = first[0]; x < end[0]; x++)
            for (int64_t y = first[1]; y < end[1]; y++) {
                const float *const from = addends + (x * counts[1] + y) * counts[2];
                float *const to = sums + ((x * step[0] + offset[0]) * given.output[1] + y * step[1] + offset[1]) *
                                             given.output[2];
                if (step[2] == 1)
                    for (int64_t z = first[2]; z < end[2]; z++) to[z + offset[2]] += from[z];
                else
                    for (int64_t z = first[2]; z < end[2]; z++) to[z * step[2] + offset[2]] += from[z];
            }
    }
};

// Vectors run over planes here, for there are few elements of a kernel and many positions in each of their chains.
class Correlation : Shape {
public:
    explicit Correlation(const cbfloat_windows &windows) : Shape(windows), items_(windows.planes / windows.kernels) {
        for (int axis = 0; axis < 3; axis++)
            padded_[axis] = (given.output[axis] - 1) * given.step[axis] + given.gap[axis] * (given.length[axis] - 1) + 1;
    }

    void run(int64_t first, int64_t last) const {
        static thread_local Scratch scratch;
        const int64_t pointers = groups(elements * int64_t{sizeof(float *)}, sizeof(float));
        float *const memory = static_cast<float *>(scratch.reserve(
            (whole(pointers) + LANES * (std::max(inputs, outputs) + product(padded_) + outputs + elements)) *
            int64_t{sizeof(float)}));
        const float **const rows = reinterpret_cast<const float **>(memory);
        float *const rounded = memory + whole(pointers), *const plane = rounded + LANES * std::max(inputs, outputs),
                     *const factors = plane + LANES * product(padded_), *const sums = factors + LANES * outputs;
        std::memset(plane, 0, static_cast<size_t>(LANES * product(padded_)) * sizeof(float));
        for (int64_t group = first; group < last; group++) {
            const int64_t kernel = group * LANES, lanes = std::min(LANES, given.kernels - kernel);
            std::fill_n(sums, LANES * elements, 0.0f);
            for (int64_t item = 0; item < items_; item++) {
                const int64_t at = item * given.kernels + kernel;
                round_plane(path.arrays(operand), operand, lanes * inputs, given.values + at * inputs, rounded);
                fill(rounded, lanes, plane);
                round_plane(path.arrays(operand), operand, lanes * outputs, given.weights + at * outputs, rounded);
                spread(rounded, outputs, lanes, outputs, factors);
                add(plane, factors, rows, sums);
            }
            round_plane(path.arrays(result), result, LANES * elements, sums, sums);
            for (int64_t lane = 0; lane < lanes; lane++)
                for (int64_t e = 0; e < elements; e++)
                    given.result[(kernel + lane) * elements + e] = sums[e * LANES + lane];
        }
        scratch.release_above(KEPT_BYTES);
    }

private:
    static void spread(const float *from, int64_t stride, int64_t lanes, int64_t count, float *to) {
        interleave(reinterpret_cast<const char *>(from), stride, lanes, 1, count, LANES, sizeof(float),
                   reinterpret_cast<char *>(to));
    }

    float *place(float *plane, int64_t i, int64_t j, int64_t k) const {
        return plane + LANES * ((i * padded_[1] + j) * padded_[2] + k);
    }

    void fill(const float *from, int64_t lanes, float *plane) const {
        const int64_t *const size = given.input, *const before = given.before;
        const int64_t begin = std::max<int64_t>(0, -before[2]), end = std::min(size[2], padded_[2] - before[2]);
        for (int64_t i = 0; i < size[0]; i++)
            for (int64_t j = 0; j < size[1]; j++) {
                const int64_t x = i + before[0], y = j + before[1];
                if (x < 0 || x >= padded_[0] || y < 0 || y >= padded_[1] || begin >= end) continue;
                spread(from + (i * size[1] + j) * size[2] + begin, inputs, lanes, end - begin,
                       place(plane, x, y, begin + before[2]));
            }
    }

    void add(float *plane, const float *factors, const float **rows, float *sums) const {
        const Environment environment(Rounding::nearest);
        const int64_t *const step = given.step, *const gap = given.gap;
        for (int64_t x = 0; x < given.output[0]; x++)
            for (int64_t y = 0; y < given.output[1]; y++, factors += LANES * given.output[2]) {
                const float **row = rows;
                for (int64_t i = 0; i < given.length[0]; i++)
                    for (int64_t j = 0; j < given.length[1]; j++)
                        for (int64_t k = 0; k < given.length[2]; k++)
                            *row++ = place(plane, x * step[0] + i * gap[0], y * step[1] + j * gap[1], k * gap[2]);
                path.correlate(given.output[2], factors, elements, rows, LANES * step[2], sums);
            }
    }

    const int64_t items_;
    int64_t padded_[3];
};

// Share out planes, or groups of kernels.
template <class Work>
int run_shares(const cbfloat_windows &windows, int64_t shares) {
    const Work work(windows);
    const double steps = static_cast<double>(windows.planes) * static_cast<double>(product(windows.length)) *
                         static_cast<double>(std::min(product(windows.input), product(windows.output)));
    const int threads =
        static_cast<int>(std::min<double>(static_cast<double>(windows.threads), 1 + steps / STEPS_PER_THREAD));
    const int64_t pieces = std::min<int64_t>(shares, threads == 1 ? 1 : 4 * threads);
    std::atomic<bool> failed{false};
    run_pieces(threads, pieces, [&](int64_t piece) {
        try {
            work.run(shares * piece / pieces, shares * (piece + 1) / pieces);
        } catch (const std::bad_alloc &) {
            failed = true;
        }
    });
    return failed ? 1 : 0;
}

}  // namespace

int cbfloat_slide(const cbfloat_windows *windows) { return run_shares<Slide>(*windows, windows->planes); }

int cbfloat_overlap(const cbfloat_windows *windows) { return run_shares<Overlap>(*windows, windows->planes); }

int cbfloat_correlate(const cbfloat_windows *windows) {
    return run_shares<Correlation>(*windows, groups(windows->kernels, LANES));
}
