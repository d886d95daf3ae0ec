// Products that count what their steps do (NUMERICS section 11): one thread for each result, in the steps of any format.
//
// Operands are read where they lie, and rounded at each use: what is counted are a few rows of a product, now and then.
#pragma once

#include "counting_steps.h"
#include "finish.h"

// What happens is added to `numbers`: the events of products, those of promotions, and the bits of the largest finite
// magnitude. The number of an event of result (i, j) of a matrix is
// numbers[event * places + matrix * matrix_place + i * row_place + j * column_place].
struct CountedProduct {
    Product product;  // its panels are not used, and nothing is scaled
    Source a, b;
    Target operand;
    int32_t joins;              // 0: the total is the chain itself
    int64_t computed;           // rows of each matrix
    const int64_t *rows;        // which; null: the first ones
    const int64_t *only_if;     // nothing is done where a 0 is; null: it is done
    uint64_t *numbers;
    int64_t places, matrix_place, row_place, column_place;
    float *reference;  // [matrix][i][j]: the values as they are, in a chain of floats; null: nobody asks
};

namespace {

// Of one sum, as CountingStep counts.
struct OwnEvents {
#define CBFLOAT_COUNT(event) uint32_t event[1];
    CBFLOAT_EVENTS(CBFLOAT_COUNT)
#undef CBFLOAT_COUNT
    float largest[1];
};

template <Mode MODE>
class CountedResult {
public:
    INLINE CountedResult(const CountedProduct &given, int64_t number)
        : given_(given), product_(given.product), column_(number % product_.n) {
        const int64_t rest = number / product_.n;
        slot_ = rest % given.computed;
        matrix_ = rest / given.computed;
        row_ = given.rows ? given.rows[slot_] : slot_;
    }

    INLINE void run() const {
        const Place place = place_of(product_.key, product_.call, product_.random_bits);
        const CountingStep<MODE> step({format_of(product_.inner), 0, MODE, place});
        const CountingStep<MODE> join({format_of(product_.outer), 0, MODE, place});
        const Words<MODE == Mode::stochastic> words(*this, place);
        const Converter rounded(given_.operand);
        const Elements a(given_.a, product_.lengths, matrix_), b(given_.b, product_.lengths, matrix_);
        OwnEvents of_products{}, of_promotions{};
        float total = Initial(product_, matrix_).at(row_, column_), sum = given_.joins ? 0 : total, plain = 0;
        int64_t left = product_.chunk;
        uint32_t chunk = 0;
        for (int64_t k = 0; k < product_.k; k++) {
            const float x = a.at(row_, k), y = b.at(k, column_);
            plain = static_cast<float>(sum_to_odd(static_cast<double>(x) * y, plain));
            sum = step(rounded(x), rounded(y), sum, words.at(static_cast<uint32_t>(k)), of_products, 0);
            if (!given_.joins || (--left && k + 1 < product_.k)) continue;
            total = join(sum, 1, total, words.at(FIRST_PROMOTION + chunk++), of_promotions, 0);
            sum = 0;
            left = product_.chunk;
        }
        Final(product_, matrix_).store(row_, column_, given_.joins ? total : sum);
        if (given_.reference) given_.reference[(matrix_ * given_.computed + slot_) * product_.n + column_] = after_initial(plain);
        add(of_products, 0);
        add(of_promotions, EVENTS);
        raise(of_products.largest[0] > of_promotions.largest[0] ? of_products.largest[0] : of_promotions.largest[0]);
    }

private:
    // The elements of a matrix.
    struct Elements {
        INLINE Elements(const Source &source, const int64_t (&lengths)[AXES], int64_t matrix)
            : source_(source), first_(along_axes(lengths, source.axes, matrix)) {}
        INLINE float at(int64_t i, int64_t j) const {
            return load_value(source_.memory, source_.data, first_ + row_offset(source_, i) + column_offset(source_, j));
        }
        const Source &source_;
        const int64_t first_;
    };

    // The random words of the result; nothing in the other modes.
    template <bool RANDOM, class Result = CountedResult>
    struct Words {
        INLINE Words(const Result &, const Place &) {}
        INLINE uint32_t at(uint32_t) const { return 0; }
    };
    template <class Result>
    struct Words<true, Result> {
        INLINE Words(const Result &result, const Place &place)
            : keys(place), index(output_index(result.product_, result.matrix_, result.row_, result.column_), place.call, keys) {}
        INLINE uint32_t at(uint32_t step) const { return random_word(index, PhiloxStep(step, keys), keys); }
        PhiloxKeys keys;
        PhiloxIndex index;
    };

    INLINE float after_initial(float plain) const {
        const Source &source = product_.initial;
        return source.data ? plain + Elements(source, product_.lengths, matrix_).at(row_, column_) : plain;
    }

    INLINE uint64_t *number(int event) const {
        return given_.numbers + event * given_.places + matrix_ * given_.matrix_place + slot_ * given_.row_place +
               column_ * given_.column_place;
    }
    INLINE void add(const OwnEvents &events, int first) const {
#define CBFLOAT_OF_EVENT(event) events.event[0],
        const uint32_t counts[EVENTS] = {CBFLOAT_EVENTS(CBFLOAT_OF_EVENT)};
#undef CBFLOAT_OF_EVENT
        UNROLL
        for (int event = 0; event < EVENTS; event++)
            if (counts[event]) add_to(number(first + event), uint64_t{counts[event]});
    }
    INLINE void raise(float largest) const {
        if (largest > 0) raise_to(number(2 * EVENTS), uint64_t{bits_of(largest)});
    }

    const CountedProduct &given_;
    const Product &product_;
    const int64_t column_;
    int64_t slot_, matrix_, row_;
};

struct CountedMemory {};
struct CountedState {};

template <Mode MODE>
INLINE void count_block(const CountedProduct &given, Block block, CountedMemory &) {
    if (given.only_if && *given.only_if == 0) return;
    const int64_t *const lengths = given.product.lengths;
    int64_t results = given.computed * given.product.n;
    for (int axis = 0; axis < AXES; axis++) results *= lengths[axis];
    Threads<CountedState> threads;
    threads.each([&](CountedState &, int thread) {
        const int64_t number = block.number * THREADS + thread;
        if (number < results) CountedResult<MODE>(given, number).run();
    });
}

}  // namespace
