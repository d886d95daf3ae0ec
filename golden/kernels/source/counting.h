// The counts of a region's results while it is computed, and where those of a call end (NUMERICS section 11).
#pragma once

#include <algorithm>
#include <cstring>
#include <mutex>
#include <vector>

#include "call.h"
#include "generic_bits.h"
#include "scratch.h"

namespace {

// What a call was asked to count. Threads add to it one after the other, where they add to the same numbers.
struct CountSink {
    CountSink(const cbfloat_counting &counting, int64_t count) : asked(counting), places(count) {}

    const cbfloat_counting &asked;
    const int64_t places;  // numbers of one kind
    std::mutex mutex;

    static int64_t places_of(const cbfloat_product &product, int64_t form) {
        if (form == CBFLOAT_COUNT_SUM) return 1;
        return product.batches * product.m * (form == CBFLOAT_COUNT_EACH ? product.n : 1);
    }
};

class Tallies {
public:
    // `rows` is how many the region's panels hold, of `columns` each.
    void start(const CountSink &sink, const Region &region, int columns, int64_t rows, int64_t panels, bool is_chain) {
        static thread_local Scratch scratch;
        region_ = region;
        columns_ = columns;
        kinds_ = is_chain ? 1 : 2;
        all_ = sink.asked.rows == nullptr;
        by_row_ = sink.asked.form != CBFLOAT_COUNT_EACH;
        slots_ = rows;
        if (!all_) {
            slots_ = 0;
            slot_of_.assign(static_cast<size_t>(rows), -1);
            for (int64_t row = 0; row < region.m1 - region.m0; row++)
                if (sink.asked.rows[region.m0 + row]) slot_of_[static_cast<size_t>(row)] = slots_++;
        }
        size_ = slots_ * panels * columns;
        const int64_t bytes = kinds_ * (EVENTS + 1) * size_ * int64_t{sizeof(uint32_t)};
        memory_ = static_cast<uint32_t *>(scratch.reserve(bytes));
        std::memset(memory_, 0, static_cast<size_t>(bytes));
    }

    bool all() const { return all_; }
    bool counts(int64_t row) const { return all_ || slot_of_[static_cast<size_t>(row)] >= 0; }

    bool counts(int64_t row, int64_t rows) const {
        for (int64_t i = row; i < row + rows; i++)
            if (counts(i)) return true;
        return false;
    }

    // Of products (0) or promotions (1) of the sums from this row of a panel on.
    Tally at(int kind, int64_t panel, int64_t row) const {
        const int64_t slot = all_ ? row : slot_of_[static_cast<size_t>(row)];
        uint32_t *const first = memory_ + kind * (EVENTS + 1) * size_ + (panel * slots_ + slot) * columns_;
        int64_t event = 0;
#define CBFLOAT_PLACE(...) first + event++ * size_,
        return {CBFLOAT_EVENTS(CBFLOAT_PLACE) reinterpret_cast<float *>(first + EVENTS * size_), by_row_};
#undef CBFLOAT_PLACE
    }

    void finish(CountSink &sink, const Call &call) const {
        std::unique_lock<std::mutex> lock(sink.mutex, std::defer_lock);
        if (sink.asked.form != CBFLOAT_COUNT_EACH) lock.lock();
        for (int64_t j = region_.n0, panel = 0; j < region_.n1; j += columns_, panel++)
            for (int64_t i = region_.m0; i < region_.m1; i++)
                if (counts(i - region_.m0))
                    for (int kind = 0; kind < kinds_; kind++)
                        add(sink, call, kind, at(kind, panel, i - region_.m0), i, j);
    }

private:
    void add(const CountSink &sink, const Call &call, int kind, const Tally &tally, int64_t i, int64_t j) const {
#define CBFLOAT_OF_TALLY(event) tally.event,
        const uint32_t *const events[EVENTS] = {CBFLOAT_EVENTS(CBFLOAT_OF_TALLY)};
#undef CBFLOAT_OF_TALLY
        const int64_t count = std::min<int64_t>(columns_, region_.n1 - j);
        const int scale = kind == 0 ? call.plan.a_exponent + call.plan.b_exponent : call.plan.total_exponent;
        if (sink.asked.form == CBFLOAT_COUNT_EACH) {
            const int64_t place = region_.batch * call.m * call.n + i * call.result_row + j * call.result_column;
            for (int event = 0; event < EVENTS; event++) {
                int64_t *const to = sink.asked.events + (kind * EVENTS + event) * sink.places + place;
                for (int64_t c = 0; c < count; c++) to[c * call.result_column] += events[event][c];
            }
            for (int64_t c = 0; c < count; c++)
                enlarge(sink.asked.largest_exponents[place + c * call.result_column], tally.largest[c], scale);
            return;
        }
        const int64_t place = sink.asked.form == CBFLOAT_COUNT_ROWS ? region_.batch * call.m + i : 0;
        for (int event = 0; event < EVENTS; event++) {
            int64_t sum = 0;
            for (int64_t c = 0; c < count; c++) sum += events[event][c];
            sink.asked.events[(kind * EVENTS + event) * sink.places + place] += sum;
        }
        float largest = 0;
        for (int64_t c = 0; c < count; c++) largest = std::max(largest, tally.largest[c]);
        enlarge(sink.asked.largest_exponents[place], largest, scale);
    }

    static void enlarge(int64_t &exponent, float largest, int scale) {
        if (largest == 0) return;
        const int64_t found = static_cast<int64_t>(bits_of(static_cast<double>(largest)) >> 52) - 1023 - scale;
        exponent = std::max(exponent, found);
    }

    Region region_{};
    int columns_ = 0, kinds_ = 0;
    bool all_ = true, by_row_ = false;
    int64_t slots_ = 0, size_ = 0;
    uint32_t *memory_ = nullptr;
    std::vector<int64_t> slot_of_;
};

}  // namespace
