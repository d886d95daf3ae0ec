// The ends of a reduction: initial values on their way into totals, totals on their way into results.
#pragma once

#include "packing.h"
#include "rounding.h"

namespace {

// Counts the results of a call in row-major order (NUMERICS section 10).
INLINE uint32_t output_index(const Product &product, int64_t batch, int64_t i, int64_t j) {
    return product.first_index + static_cast<uint32_t>(batch) * product.batch_index +
           static_cast<uint32_t>(i) * product.row_index + static_cast<uint32_t>(j);
}

// What the totals start from, rounded and scaled.
class Initial {
public:
    INLINE Initial(const Product &product, int64_t batch)
        : product_(product),
          first_(along_axes(product.lengths, product.initial.axes, batch)),
          given_(product.initial_target),
          outer_(product.outer) {}

    INLINE float at(int64_t i, int64_t j) const {
        const Source &source = product_.initial;
        if (!source.data || i >= product_.m || j >= product_.n) return 0;
        const int64_t place = first_ + row_offset(source, i) + column_offset(source, j);
        return outer_(given_(load_value(source.memory, source.data, place)));
    }

private:
    const Product &product_;
    const int64_t first_;
    const Converter given_, outer_;
};

class Final {
public:
    INLINE Final(const Product &product, int64_t batch)
        : product_(product),
          batch_(batch),
          first_(along_axes(product.lengths, product.result_axes, batch)),
          factor_(float_power(-product.outer.exponent)),
          nearest_(product.destination),
          any_(product.destination, static_cast<Mode>(product.last_mode), product.random_bits) {}

    // Store a total.
    INLINE void store(int64_t i, int64_t j, float total) const {
        if (i >= product_.m || j >= product_.n) return;
        const float value = total * factor_;
        const float rounded = product_.last_mode ? in_mode(value, i, j) : nearest_(value);
        const int64_t place = first_ + i * product_.result_row + j * product_.result_column;
        store_value(product_.result_memory, product_.result, place, rounded);
    }

private:
    INLINE float in_mode(float value, int64_t i, int64_t j) const {
        uint32_t word = 0;
        if (static_cast<Mode>(product_.last_mode) == Mode::stochastic) {
            const Place place = place_of(product_.key, product_.call, product_.random_bits);
            const PhiloxKeys keys(place);
            const PhiloxIndex index(output_index(product_, batch_, i, j), product_.call, keys);
            word = random_word(index, PhiloxStep(FINAL_CONVERSION, keys), keys);
        }
        return any_(value, word);
    }

    const Product &product_;
    const int64_t batch_, first_;
    const float factor_;
    const Converter nearest_;
    const AnyRounder any_;
};

}  // namespace
