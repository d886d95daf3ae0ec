// Matrix products and dot products, cut into regions and tiles around the chains of a path.
//
// Every result is one chain of steps with k ascending. Regions and threads share out the results, never the chain;
// where k is cut into blocks, the partial sums and the totals go on from where they were.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <new>
#include <optional>
#include <vector>

#include "call.h"
#include "counting.h"
#include "environment.h"
#include "kernels.h"
#include "pack.h"
#include "path.h"
#include "plan.h"
#include "pool.h"
#include "scratch.h"

namespace {

constexpr int64_t BLOCK = 256;  // products of one packed block, unless a chunk is just longer
constexpr int64_t STEPS_PER_THREAD = 1 << 18;  // fewer are not worth waking a thread
constexpr int64_t KEPT_BYTES = 64 << 20;       // scratch memory that a thread keeps
// Steps of the roundings that are none of a product (NUMERICS section 10).
constexpr int64_t FIRST_PROMOTION = int64_t{1} << 31, FINAL_CONVERSION = (int64_t{1} << 32) - 1;

class Worker {
public:
    // Without `sink` nothing is counted.
    Worker(const Call &call, const Region &region, CountSink *sink)
        : call_(call),
          plan_(call.plan),
          tiles_(*plan_.tiles),
          region_(region),
          environment_(Rounding::nearest),
          tile_(static_cast<int64_t>(tiles_.rows) * tiles_.columns),
          row_panels_(plan_.dot ? 1 : groups(region.m1 - region.m0, tiles_.rows)),
          column_panels_(groups(region.n1 - region.n0, tiles_.columns)),
          chunk_(call.chunk > 0 ? std::min(call.chunk, call.k) : call.k),
          block_(chunk_ <= BLOCK ? BLOCK / chunk_ * chunk_ : BLOCK),
          keeps_partial_(!plan_.is_chain && chunk_ > BLOCK),
          sink_(sink) {}

    void run() {
        static thread_local Scratch scratch;
        const int64_t a_width = plan_.dot ? tiles_.columns * column_panels_ : tiles_.rows * row_panels_;
        const int64_t b_width = tiles_.columns * column_panels_;
        const int64_t depth = std::min(block_, call_.k);
        const int64_t sums = tile_ * row_panels_ * column_panels_ * int64_t{sizeof(float)};
        const int64_t a_bytes = depth * a_width * int64_t{sizeof(float)},
                      b_bytes = depth * b_width * int64_t{sizeof(float)};
        const int64_t raw_bytes = depth * std::max(tiles_.rows, tiles_.columns) * int64_t{sizeof(float)};
        char *memory = static_cast<char *>(scratch.reserve(2 * sums + a_bytes + b_bytes + raw_bytes));
        totals_ = reinterpret_cast<float *>(memory);
        partials_ = reinterpret_cast<float *>(memory + sums);
        a_ = memory + 2 * sums;
        b_ = a_ + a_bytes;
        raw_ = b_ + b_bytes;

        start();
        if (sink_) tallies_.start(*sink_, region_, tiles_.columns, row_panels_ * tiles_.rows, column_panels_, plan_.is_chain);
        for (int64_t k0 = 0; k0 < call_.k;) {
            // A block ends where its products do, and where a chunk does that began in an earlier block.
            int64_t k1 = std::min(k0 + block_, call_.k);
            if (chunk_ > BLOCK) k1 = std::min(k1, (k0 / chunk_ + 1) * chunk_);
            add_block(k0, k1);
            k0 = k1;
        }
        finish();
        if (sink_) tallies_.finish(*sink_, call_);
        scratch.release_above(KEPT_BYTES);
    }

private:
    int64_t rows() const { return region_.m1 - region_.m0; }
    int64_t columns() const { return region_.n1 - region_.n0; }
    int64_t tile_rows(int64_t panel) const { return std::min<int64_t>(tiles_.rows, rows() - panel * tiles_.rows); }
    int64_t tile_columns(int64_t panel) const {
        return std::min<int64_t>(tiles_.columns, columns() - panel * tiles_.columns);
    }
    float *total(int64_t row_panel, int64_t column_panel) const {
        return totals_ + (column_panel * row_panels_ + row_panel) * tile_;
    }

    // Visit the rows of the region's results: their place in the totals, their position, how many columns they have.
    template <class Visit>
    void each_row(const Visit &visit) {
        for (int64_t column = 0; column < column_panels_; column++)
            for (int64_t panel = 0; panel < row_panels_; panel++)
                for (int64_t row = 0; row < tile_rows(panel); row++)
                    visit(total(panel, column) + row * tiles_.columns, region_.m0 + panel * tiles_.rows + row,
                          region_.n0 + column * tiles_.columns, tile_columns(column));
    }

    void start() {
        std::memset(totals_, 0, static_cast<size_t>(tile_ * row_panels_ * column_panels_) * sizeof(float));
        if (!call_.initial.data) return;
        const int bytes = call_.initial.bytes(plan_.outer);
        each_row([&](float *totals, int64_t i, int64_t j, int64_t count) {
            gather(element(call_.initial, region_.batch, i, j, bytes), call_.initial.column_stride, count, bytes, raw_);
            if (plan_.has(CBFLOAT_INITIAL_ROUNDED))
                to_floats(plan_.result, count, raw_, reinterpret_cast<float *>(raw_), 0, true);
            to_floats(plan_.outer, count, raw_, totals, plan_.total_exponent, call_.initial.as_values);
            flush(plan_.outer, plan_.total_exponent, count, totals);
        });
    }

    // Subnormal values of the format, times 2^exponent, become zeros if they count as such.
    void flush(const Format &format, int exponent, int64_t count, float *values) const {
        if (plan_.flushes) zero_below(static_cast<float>(std::ldexp(1.0, format.emin() + exponent)), count, values);
    }

    static void zero_below(float smallest, int64_t count, float *values) {
        for (int64_t i = 0; i < count; i++) values[i] = std::fabs(values[i]) < smallest ? std::copysign(0.0f, values[i]) : values[i];
    }

    // Codes or values, as the call has them, become values of the format times 2^exponent.
    void to_floats(const Format &format, int64_t count, const void *from, float *to, int exponent, bool as_values) {
        const Arrays &arrays = plan_.path.arrays(format);
        environment_.change(arrays.rounding_for(format));
        if (as_values)
            arrays.quantize(format, count, static_cast<const float *>(from), to, exponent);
        else
            arrays.decode(format, count, from, to, exponent);
    }

    // Pack one operand's panels of the block; return the largest magnitude among the packed values where it matters to
    // the choice of tiles. Where it matters to what is counted, `smallest` gets the smallest but 0 of each chunk of each
    // panel.
    double pack(const Matrix &matrix, int64_t first, int64_t count, int width, int64_t k0, int64_t k1,
                int exponent, char *packed, std::vector<float> &smallest) {
        const int bytes = matrix.bytes(plan_.operand);
        const int64_t depth = k1 - k0, size = depth * width;
        double largest = 0;
        smallest.clear();
        for (int64_t lane = 0; lane < count; lane += width) {
            const int64_t lanes = std::min<int64_t>(width, count - lane);
            char *to = packed + lane * depth * tiles_.element_bytes;
            const bool is_ready = matrix.is_rounded && exponent == 0 && !plan_.halves;
            char *const gathered = is_ready ? to : raw_;
            if (matrix.tables.rows)
                interleave_indexed(start_of(matrix, region_.batch, bytes), matrix.tables.rows + first + lane, lanes,
                                   matrix.tables.columns + k0, depth, width, bytes, gathered);
            else
                interleave(element(matrix, region_.batch, first + lane, k0, bytes), matrix.row_stride, lanes,
                           matrix.column_stride, depth, width, bytes, gathered);
            if (plan_.halves) {
                to_halves(size, to, matrix.as_values);
                continue;
            }
            float *floats = reinterpret_cast<float *>(to);
            if (!is_ready) to_floats(plan_.operand, size, raw_, floats, exponent, matrix.as_values);
            flush(plan_.operand, exponent, size, floats);
            if (plan_.tiles != plan_.limited) largest = std::max<double>(largest, plan_.path.largest(size, floats));
            if (sink_ && plan_.has_tiny_products())
                for (int64_t k = 0; k < depth; k += chunk_)
                    smallest.push_back(plan_.path.smallest(std::min(chunk_, depth - k) * width, floats + k * width));
        }
        return std::ldexp(largest, -exponent);
    }

    void to_halves(int64_t count, char *to, bool as_values) {
        if (!as_values) {
            std::memcpy(to, raw_, static_cast<size_t>(count) * 2);
            return;
        }
        const Arrays &arrays = plan_.path.arrays(plan_.operand);
        environment_.change(arrays.rounding_for(plan_.operand));
        arrays.encode(plan_.operand, count, reinterpret_cast<const float *>(raw_), to);
    }

    void add_block(int64_t k0, int64_t k1) {
        const int a_width = plan_.dot ? tiles_.columns : tiles_.rows;
        const int64_t first = plan_.dot ? region_.n0 : region_.m0, count = plan_.dot ? columns() : rows();
        const double largest_a = pack(call_.a, first, count, a_width, k0, k1, plan_.a_exponent, a_, smallest_a_);
        const double largest_b =
            pack(call_.b, region_.n0, columns(), tiles_.columns, k0, k1, plan_.b_exponent, b_, smallest_b_);

        const Tiles *chosen = plan_.tiles;
        if (plan_.tiles != plan_.limited) {
            // A chain begins with the initial value, of which no bound is known if there is one.
            if (k0 % chunk_ == 0) bound_ = plan_.is_chain && call_.initial.data ? INFINITY : 0;
            bound_ = plan_.bound(bound_, std::min(k1 - k0, chunk_), largest_a * largest_b);
            if (plan_.may_overflow(bound_)) {
                chosen = plan_.limited;
                bound_ = INFINITY;  // for the rest of the chunk
            }
        }
        environment_.change(chosen->rounding);
        const int64_t depth = k1 - k0, pitch = tiles_.element_bytes;
        for (int64_t column = 0; column < column_panels_; column++)
            for (int64_t row = 0; row < row_panels_; row++) {
                const int64_t a_panel = plan_.dot ? column : row;
                add_tile(*chosen, k0, k1, a_ + a_panel * depth * a_width * pitch, a_width * pitch,
                         b_ + column * depth * tiles_.columns * pitch, row, column);
            }
    }

    void add_tile(const Tiles &tiles, int64_t k0, int64_t k1, const char *a, int64_t a_step, const char *b, int64_t row,
                  int64_t column) {
        const int used_rows = plan_.dot ? 1 : static_cast<int>(tile_rows(row));
        const int64_t b_step = tiles.columns * tiles.element_bytes;
        const auto chain = [&](int64_t steps, const char *x, const char *y, float *sums, const Rule &rule) {
            const int64_t piece = (y - b) / b_step / chunk_;
            add_products(tiles, steps, x, y, sums, rule, row, column, piece, groups(k1 - k0, chunk_));
        };
        float *const totals = total(row, column);
        counts_here_ = sink_ && tallies_.counts(row * tiles.rows, plan_.dot ? 1 : tile_rows(row));
        if (plan_.is_chain) {
            chain(k1 - k0, a, b, totals, at(plan_.chain_rule, row, column, k0));
            return;
        }
        alignas(64) float local[MOST_SUMS];
        float *const partial = keeps_partial_ ? partials_ + (totals - totals_) : local;
        const int64_t used = static_cast<int64_t>(used_rows) * tiles.columns;
        for (int64_t k = k0; k < k1;) {
            const int64_t end = std::min(k1, (k / chunk_ + 1) * chunk_);
            if (k % chunk_ == 0) std::memset(partial, 0, static_cast<size_t>(used) * sizeof(float));
            const Rule rule = at(plan_.chain_rule, row, column, k);
            chain(end - k, a + (k - k0) * a_step, b + (k - k0) * b_step, partial, rule);
            if (end % chunk_ == 0 || end == call_.k)
                join(tiles, used, partial, totals, at(plan_.join_rule, row, column, FIRST_PROMOTION + k / chunk_), row,
                     column);
            k = end;
        }
    }

    // Whether to watch for sums that are inexact below the smallest normal value, in a chunk of the `chunks` of a block.
    bool may_be_tiny(int64_t row, int64_t column, int64_t chunk, int64_t chunks) const {
        if (!plan_.has_tiny_products()) return false;
        const auto at = [&](int64_t panel) { return static_cast<size_t>(panel * chunks + chunk); };
        return plan_.may_be_tiny(double{smallest_a_[at(plan_.dot ? column : row)]} * smallest_b_[at(column)]);
    }

    // Run the chains of a tile, and count in the rows that are counted.
    void add_products(const Tiles &tiles, int64_t steps, const char *a, const char *b, float *sums, const Rule &rule,
                      int64_t row, int64_t column, int64_t chunk, int64_t chunks) {
        const int rows = plan_.dot ? 1 : static_cast<int>(tile_rows(row)), columns = static_cast<int>(tile_columns(column));
        if (counts_here_) {
            const bool is_tiny = may_be_tiny(row, column, chunk, chunks);
            const CountedChain counted = is_tiny ? tiles.counted->tiny_chain : tiles.counted->chain;
            if (tallies_.all()) {
                counted(rows, columns, plan_.dot, steps, a, b, sums, rule, tallies_.at(0, column, row * tiles.rows));
                return;
            }
            each_counted(tiles, row, rows, sums, tiles.element_bytes, rule, [&](int i, float *copy, const Rule &here) {
                const char *const x = a + (plan_.dot ? 0 : i * tiles.element_bytes);
                counted(1, columns, plan_.dot, steps, x, b, copy, here, tallies_.at(0, column, row * tiles.rows + i));
            });
        }
        tiles.chain(rows, columns, plan_.dot)(steps, a, b, sums, rule);
    }

    // Visit the counted rows among those of a tile: which it is, a copy of its sums, its rule.
    template <class Visit>
    void each_counted(const Tiles &tiles, int64_t panel, int rows, const float *sums, int bytes_of_sum,
                      const Rule &rule, const Visit &visit) {
        for (int i = 0; i < rows; i++) {
            if (!tallies_.counts(panel * tiles.rows + i)) continue;
            alignas(64) float copy[MOST_SUMS];
            const int64_t bytes = int64_t{tiles.columns} * bytes_of_sum;
            std::memcpy(copy, reinterpret_cast<const char *>(sums) + i * bytes, static_cast<size_t>(bytes));
            Rule here = rule;
            here.place.index += static_cast<uint32_t>(i) * rule.place.row_stride;
            visit(i, copy, here);
        }
    }

    // The rule of a tile from this step on.
    Rule at(const Rule &rule, int64_t row, int64_t column, int64_t step) const {
        if (rule.mode != Mode::stochastic) return rule;
        return at(rule, region_.m0 + row * tiles_.rows, region_.n0 + column * tiles_.columns, step, rule.place);
    }
    Rule at(Rule rule, int64_t i, int64_t j, int64_t step, Place place) const {
        place.step = static_cast<uint32_t>(step);
        place.index = static_cast<uint32_t>(region_.batch * call_.m * call_.n + i * call_.result_row +
                                            j * call_.result_column);
        place.row_stride = static_cast<uint32_t>(call_.result_row);
        place.stride = static_cast<uint32_t>(call_.result_column);
        rule.place = place;
        return rule;
    }

    void join(const Tiles &tiles, int64_t used, float *partial, float *totals, const Rule &rule, int64_t row,
              int64_t column) {
        alignas(64) float widened[MOST_SUMS];
        if (plan_.halves) {
            const Format half = plan_.inner;
            const Arrays &arrays = plan_.path.arrays(half);
            arrays.decode(half, used, partial, widened, 0);
            partial = widened;
        }
        environment_.change(plan_.joining->rounding);
        const auto counted = counts_here_ ? plan_.joining->counted->join : nullptr;
        if (counted && !tallies_.all())
            each_counted(tiles, row, static_cast<int>(used / tiles.columns), totals, sizeof(float), rule,
                         [&](int i, float *copy, const Rule &here) {
                             counted(tiles.columns, partial + i * tiles.columns, copy, plan_.join_factor, here,
                                     tallies_.at(1, column, row * tiles.rows + i));
                         });
        if (counted && tallies_.all())
            counted(used, partial, totals, plan_.join_factor, rule, tallies_.at(1, column, row * tiles.rows));
        else
            plan_.joining->join(used, partial, totals, plan_.join_factor, rule);
        environment_.change(tiles.rounding);
    }

    void finish() {
        const Arrays &arrays = plan_.path.arrays(plan_.result);
        const float factor = std::ldexp(1.0f, -plan_.total_exponent);
        alignas(64) float row[MOST_SUMS];
        // What was converted is of the result's format, so that no rounding is left for the environment.
        environment_.change(plan_.convert ? Rounding::nearest : arrays.rounding_for(plan_.result));
        each_row([&](float *totals, int64_t i, int64_t j, int64_t count) {
            for (int64_t c = 0; c < count; c++) totals[c] *= factor;
            if (plan_.convert)
                plan_.convert(count, totals, at(plan_.last_rule, i, j, FINAL_CONVERSION, plan_.last_rule.place));
            // As a float it is either exact or one that no smaller float reaches.
            if (plan_.flushes) zero_below(static_cast<float>(first_kept(plan_.result)), count, totals);
            if (plan_.has_values(CBFLOAT_CODES_OF_RESULT))
                arrays.quantize(plan_.result, count, totals, row, 0);
            else
                arrays.encode(plan_.result, count, totals, row);
            const int64_t place = region_.batch * call_.m * call_.n + i * call_.result_row + j * call_.result_column;
            scatter(row, count, call_.result_bytes, call_.result + place * call_.result_bytes, call_.result_column);
        });
    }

    static constexpr int64_t MOST_SUMS = 1024;
    const Call &call_;
    const Plan &plan_;
    const Tiles &tiles_;
    const Region region_;
    Environment environment_;
    const int64_t tile_, row_panels_, column_panels_, chunk_, block_;
    const bool keeps_partial_;
    CountSink *const sink_;
    Tallies tallies_;
    std::vector<float> smallest_a_, smallest_b_;
    bool counts_here_ = false;
    float *totals_ = nullptr, *partials_ = nullptr;
    char *a_ = nullptr, *b_ = nullptr, *raw_ = nullptr;
    double bound_ = 0;
};

}  // namespace

int cbfloat_multiply(const cbfloat_product *product) { return cbfloat_multiply_indexed(product, nullptr, nullptr); }

int cbfloat_multiply_indexed(const cbfloat_product *product, const cbfloat_tables *a, const cbfloat_tables *b) {
    return cbfloat_multiply_rounded(product, a, b, nullptr);
}

int cbfloat_multiply_rounded(const cbfloat_product *product, const cbfloat_tables *a, const cbfloat_tables *b,
                             const cbfloat_rounding *rounding) {
    return cbfloat_multiply_counted(product, a, b, rounding, nullptr);
}

int cbfloat_multiply_counted(const cbfloat_product *product, const cbfloat_tables *a, const cbfloat_tables *b,
                             const cbfloat_rounding *rounding, const cbfloat_counting *counting) {
    for (const int64_t mode : {rounding ? rounding->steps : 0, rounding ? rounding->last : 0})
        if (mode < 0 || mode >= MODES) return 2;
    const bool is_plain = !rounding || (rounding->steps == CBFLOAT_NEAREST_EVEN && rounding->last == CBFLOAT_NEAREST_EVEN);
    if ((product->contents & CBFLOAT_FLUSHED) != 0 && (counting || !is_plain)) return 2;
    const Path *path = path_numbered(static_cast<int>(product->path));
    const Plan plan(*product, *path, rounding, counting != nullptr);
    // The rows that are counted, or counted apart, are those of a.
    const bool by_rows = counting && (counting->rows || counting->form == CBFLOAT_COUNT_ROWS);
    const Call call = arranged(*product, plan, a, b, !by_rows);
    std::optional<CountSink> sink;
    if (counting) sink.emplace(*counting, CountSink::places_of(*product, counting->form));
    const double steps = static_cast<double>(call.batches) * static_cast<double>(call.m) * static_cast<double>(call.n) *
                         static_cast<double>(call.k);
    const int threads =
        static_cast<int>(std::min<double>(static_cast<double>(product->threads), 1 + steps / STEPS_PER_THREAD));
    const Cut cut(call, threads, counting && !counting->rows);
    std::atomic<bool> failed{false};
    run_pieces(threads, call.batches * cut.down * cut.across, [&](int64_t piece) {
        const int64_t part = piece % (cut.down * cut.across), batch = piece / (cut.down * cut.across);
        const int64_t i = part / cut.across, j = part % cut.across;
        const int rows = plan.tiles->rows, columns = plan.tiles->columns;
        const Region region{batch, edge(i, cut.down, cut.row_panels, rows, call.m),
                            edge(i + 1, cut.down, cut.row_panels, rows, call.m),
                            edge(j, cut.across, cut.column_panels, columns, call.n),
                            edge(j + 1, cut.across, cut.column_panels, columns, call.n)};
        if (region.m0 == region.m1 || region.n0 == region.n1) return;
        try {
            Worker(call, region, sink ? &*sink : nullptr).run();
        } catch (const std::bad_alloc &) {
            failed = true;
        }
    });
    return failed ? 1 : 0;
}
