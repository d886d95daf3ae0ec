// Matrix products: every result is one chain of steps with k ascending, in the registers of one thread.
//
// A block computes a tile of results. Pieces of the two panels pass through shared memory, the next one on its way while
// one is used. Sums stay in registers: at levels 1 and 2 the partial sums of a chunk beside the totals that they join.
#pragma once

#include "finish.h"
#include "place.h"
#include "variant.h"

namespace {

// Two pieces of the panels; before and after them a row of each line of threads.
template <class Element, int DEPTH, int SIDE>
union alignas(16) GemmMemory {
    struct {
        Element a[2][DEPTH][SIDE], b[2][DEPTH][SIDE];
    } pieces;
    float rows[SIDE_THREADS][SIDE];
};

template <class V, int P>
class Gemm {
public:
    using Plain = typename V::Plain;
    using Limited = typename V::Limited;
    using Join = typename V::Join;
    using Element = typename Plain::Element;
    using Vector = typename Plain::Vector;
    using Lines = Layout<P, sizeof(Element)>;
    // Products of a piece: a stage of floats, or two of halves, which are as many bytes and wait half as often.
    static constexpr int DEPTH = V::native ? 2 * STAGE : STAGE;
    using Memory = GemmMemory<Element, DEPTH, Lines::SIDE>;
    static constexpr int SIDE = Lines::SIDE, GROUP = Lines::GROUP, COUNT = Plain::COUNT;
    static constexpr int PITCH = SIDE * static_cast<int>(sizeof(Element)), SIZE = DEPTH * PITCH;  // bytes: of a k, of a piece

    static INLINE void run(const Product &product, Block block, Memory &shared) {
        const Gemm gemm(product, TilePlace(product, block.number));
        const int pieces = static_cast<int>((product.k + DEPTH - 1) / DEPTH);
        Threads<State> threads;
        threads.each([&](State &state, int) { gemm.start(state); });
        if (product.initial.data) gemm.read_initial(threads, shared);
        threads.each([&](State &state, int thread) {
            if (pieces) gemm.copy(state, shared, 0, thread);
            copies_arrive();
        });
        for (int piece = 0; piece < pieces; piece++)
            threads.each([&](State &state, int thread) {
                const float largest = state.largest;
                if (piece + 1 < pieces) gemm.copy(state, shared, piece + 1, thread);
                gemm.add_piece(state, shared, piece, piece + 1 == pieces, largest, thread);
                copies_arrive();
            });
        gemm.write_results(threads, shared);
    }

private:
    static constexpr int COPIED = 16;  // bytes, at once

    // Sums of pairs: where the rows 2i, 2i + 1 and the columns 2v, 2v + 1 meet, sum[2i][v] has (2i, 2v) and (2i + 1, 2v + 1),
    // sum[2i + 1][v] has (2i, 2v + 1) and (2i + 1, 2v). So a step takes two rows and two columns as they lie in memory, or
    // with the columns exchanged, and no row need stand in both halves of a register.
    struct State {
        Vector sum[P][P / COUNT];                                 // of the chunk, or of all
        typename Join::Vector total[V::joins ? P : 1][V::joins ? P : 1];
        int left;           // products until the chunk ends
        uint32_t chunk;     // its number
        float largest;      // what a product of the coming piece is at most
        float bound;        // what a partial sum may have reached
    };

    INLINE Gemm(const Product &product, const TilePlace &tile)
        : product_(product),
          tile_(tile),
          a_panel_(along_axes(product.lengths, product.a_axes, tile.batch) * product.row_tiles + tile.row),
          b_panel_(along_axes(product.lengths, product.b_axes, tile.batch) * product.column_tiles + tile.column),
          a_(static_cast<const char *>(product.a) + a_panel_ * product.depth * PITCH),
          b_(static_cast<const char *>(product.b) + b_panel_ * product.depth * PITCH),
          rest_(static_cast<int>((product.k - 1) % DEPTH) + 1),
          place_(place_of(product.key, product.call, product.random_bits)),
          chain_rule_{format_of(product.inner), product.inner_limit, V::mode, place_},
          join_rule_{format_of(product.outer), product.outer_limit, V::mode, place_} {}

    INLINE uint32_t index(int64_t i, int64_t j) const { return output_index(product_, tile_.batch, i, j); }

    // Where the thread's result (i, j) is among the sums: in which row, and in which part of a vector.
    static constexpr int sum_row(int i, int j) { return i / COUNT * COUNT + (COUNT - i % COUNT + j % COUNT) % COUNT; }
    static constexpr int sum_part(int i) { return i % COUNT; }

    static INLINE void clear(State &state) {
        const Element none[COUNT] = {};
        UNROLL
        for (int i = 0; i < P; i++)
            UNROLL
            for (int v = 0; v < P / COUNT; v++) state.sum[i][v] = Plain::load(none);
    }

    INLINE void start(State &state) const {
        const float zero = 0;
        clear(state);
        UNROLL
        for (int i = 0; i < P; i++) {
            if constexpr (V::joins) {
                UNROLL
                for (int j = 0; j < P; j++) state.total[i][j] = Join::load(&zero);
            }
        }
        state.left = static_cast<int>(product_.chunk);
        state.chunk = 0;
        state.largest = state.bound = 0;
    }

    // Visit the results of the i-th rows of all lines, neighbours by neighbouring threads.
    template <class Visit>
    INLINE void each_result(int i, int thread, const Visit &visit) const {
        for (int at = thread; at < SIDE_THREADS * SIDE; at += THREADS) {
            const int line = at / SIDE, column = at % SIDE;
            visit(line, column, tile_.row * SIDE + Lines::row_of(line, i), tile_.column * SIDE + column);
        }
    }

    INLINE void read_initial(Threads<State> &threads, Memory &shared) const {
        UNROLL
        for (int i = 0; i < P; i++) {
            threads.each([&](State &, int thread) {
                const Initial initial(product_, tile_.batch);
                each_result(i, thread, [&](int line, int column, int64_t row, int64_t place) {
                    shared.rows[line][column] = initial.at(row, place);
                });
            });
            threads.each([&](State &state, int thread) {
                const Lines layout(thread);
                float values[P];
                read(shared.rows[layout.line] + layout.column0, GROUP * WARP_COLUMNS, values);
                UNROLL
                for (int j = 0; j < P; j++)
                    if constexpr (V::joins)
                        state.total[i][j] = Join::load(values + j);
                    else
                        state.sum[i][j] = Plain::load(values + j);
            });
        }
    }

    // Begin to copy the thread's part of a piece; the last may be a stage shorter.
    INLINE void copy(State &state, Memory &shared, int piece, int thread) const {
        const int mine = COPIED * thread;
        char *const to_a = reinterpret_cast<char *>(shared.pieces.a[piece % 2]) + mine;
        char *const to_b = reinterpret_cast<char *>(shared.pieces.b[piece % 2]) + mine;
        const char *const a = a_ + int64_t{piece} * SIZE + mine, *const b = b_ + int64_t{piece} * SIZE + mine;
        const int64_t left = (product_.depth - int64_t{piece} * DEPTH) * PITCH;
        UNROLL
        for (int at = 0; at < SIZE; at += COPIED * THREADS) {
            if ((SIZE % (COPIED * THREADS) == 0 || at + mine < SIZE) && (DEPTH == STAGE || at + mine < left)) {
                start_copy(to_a + at, a + at);
                start_copy(to_b + at, b + at);
            }
        }
        if constexpr (V::bounded) {
            static_assert(DEPTH == STAGE, "bounds are those of stages");
            const int64_t stages = product_.depth / STAGE;
            state.largest = float_of(product_.largest_a[a_panel_ * stages + piece]) *
                            float_of(product_.largest_b[b_panel_ * stages + piece]);
        }
    }

    INLINE void add_piece(State &state, const Memory &shared, int piece, bool is_last, float largest, int thread) const {
        const Lines layout(thread);
        const Element *const a = shared.pieces.a[piece % 2][0] + layout.row0;
        const Element *const b = shared.pieces.b[piece % 2][0] + layout.column0;
        const int used = is_last ? rest_ : DEPTH;
        const uint32_t step = static_cast<uint32_t>(piece) * DEPTH;
        for (int k = 0; k < used;) {
            const int most = used - k < STAGE ? used - k : STAGE, count = V::joins && state.left < most ? state.left : most;
            if (V::bounded && below_limit(state, count, largest))
                add_products<Plain>(state, a + k * SIDE, b + k * SIDE, count, step + static_cast<uint32_t>(k), layout);
            else
                add_products<Limited>(state, a + k * SIDE, b + k * SIDE, count, step + static_cast<uint32_t>(k), layout);
            k += count;
            if constexpr (V::joins) {
                state.left -= count;
                if (state.left == 0 || (is_last && k == used)) join(state, layout);
            }
        }
    }

    // Whether no partial sum can overflow in these steps.
    INLINE bool below_limit(State &state, int steps, float largest) const {
        constexpr float ROUNDED = 1 + 0x1p-21f;  // makes up for the bound's own roundings
        const float count = static_cast<float>(steps), growth = (1 + count * product_.growth) * ROUNDED;
        state.bound = (state.bound + count * (largest * product_.product_factor + product_.smallest)) * growth;
        return state.bound < product_.safe;
    }

    template <class Step>
    INLINE void add_products(State &state, const Element *a, const Element *b, int steps, uint32_t number,
                             const Lines &layout) const {
        const Step step(chain_rule_);
        const Words<P> words(*this, layout);
        const auto add = [&](int k) {
            add_product(step, state, a + k * SIDE, b + k * SIDE, words, words.step(number + static_cast<uint32_t>(k)));
        };
        if (V::unrolled > 1 && steps == STAGE) {  // a number that the compiler knows
            UNROLL_BY(V::unrolled)
            for (int k = 0; k < STAGE; k++) add(k);
        } else {
            UNROLL_BY(1)
            for (int k = 0; k < steps; k++) add(k);
        }
    }

    template <class Step, class Random, class Here>
    static INLINE void add_product(const Step &step, State &state, const Element *a, const Element *b, const Random &words,
                                   const Here &here) {
        Element x[P], y[P];
        read(a, GROUP * WARP_ROWS, x);
        read(b, GROUP * WARP_COLUMNS, y);
        Vector column[COUNT][P / COUNT];
        UNROLL
        for (int v = 0; v < P / COUNT; v++) {
            column[0][v] = Step::load(y + v * COUNT);
            if constexpr (COUNT == 2) column[1][v] = Step::exchanged(column[0][v]);
        }
        UNROLL
        for (int i = 0; i < P; i++) {
            Vector row;
            if constexpr (COUNT == 2)
                row = Step::load(x + i / COUNT * COUNT);
            else
                row = Step::all(x[i]);
            UNROLL
            for (int v = 0; v < P / COUNT; v++)
                state.sum[i][v] = step(row, column[i % COUNT][v], state.sum[i][v], words.at(i, v, here));
        }
    }

    // Read the thread's elements of a row of a stage; its groups are `pitch` apart.
    template <class Item>
    static INLINE void read(const Item *from, int pitch, Item (&to)[P]) {
        UNROLL
        for (int i = 0; i < P; i += GROUP) {
            const Group<Item, GROUP> group = *reinterpret_cast<const Group<Item, GROUP> *>(from + i / GROUP * pitch);
            UNROLL
            for (int j = 0; j < GROUP; j++) to[i + j] = group.at[j];
        }
    }

    INLINE void join(State &state, const Lines &layout) const {
        const Join step(join_rule_);
        const Words<P> words(*this, layout);
        const auto here = words.step(FIRST_PROMOTION + state.chunk);
        const typename Join::Vector factor = Join::all(product_.join_factor);
        UNROLL
        for (int i = 0; i < P; i++) {
            UNROLL
            for (int j = 0; j < P; j++) {
                Element partial[COUNT];
                Plain::store(partial, state.sum[sum_row(i, j)][j / COUNT]);
                const float value = V::value(partial[sum_part(i)]);
                state.total[i][j] = step(Join::load(&value), factor, state.total[i][j], words.at(i, j, here));
            }
        }
        clear(state);
        state.left = static_cast<int>(product_.chunk);
        state.chunk++;
        state.bound = 0;
    }

    INLINE void write_results(Threads<State> &threads, Memory &shared) const {
        UNROLL
        for (int i = 0; i < P; i++) {
            threads.each([&](State &state, int thread) {
                const Lines layout(thread);
                UNROLL
                for (int j = 0; j < P; j++) {
                    float *const to = &shared.rows[layout.line][layout.column(j)];
                    if constexpr (V::joins)
                        Join::store(to, state.total[i][j]);
                    else
                        Plain::store(to, state.sum[i][j]);
                }
            });
            threads.each([&](State &, int thread) {
                const Final final(product_, tile_.batch);
                each_result(i, thread, [&](int line, int column, int64_t row, int64_t place) {
                    final.store(row, place, shared.rows[line][column]);
                });
            });
        }
    }

    // The random words of a thread's sums; nothing in the other modes.
    template <int SIZE, bool RANDOM = V::random>
    struct Words {
        INLINE Words(const Gemm &, const Lines &) {}
        INLINE int step(uint32_t) const { return 0; }
        INLINE uint32_t at(int, int, int) const { return 0; }
    };
    template <int SIZE>
    struct Words<SIZE, true> {
        INLINE Words(const Gemm &gemm, const Lines &layout) : keys(gemm.place_) {
            UNROLL
            for (int i = 0; i < SIZE; i++)
                UNROLL
                for (int j = 0; j < SIZE; j++) {
                    const int64_t row = gemm.tile_.row * SIDE + layout.row(i), column = gemm.tile_.column * SIDE + layout.column(j);
                    indices[i][j] = PhiloxIndex(gemm.index(row, column), gemm.place_.call, keys);
                }
        }
        INLINE PhiloxStep step(uint32_t number) const { return PhiloxStep(number, keys); }
        INLINE uint32_t at(int i, int j, const PhiloxStep &here) const { return random_word(indices[i][j], here, keys); }
        PhiloxKeys keys;
        PhiloxIndex indices[SIZE][SIZE];
    };

    const Product &product_;
    const TilePlace tile_;
    const int64_t a_panel_, b_panel_;
    const char *const a_, *const b_;  // the panels
    const int rest_;                  // products of the last piece
    const Place place_;
    const Rule chain_rule_, join_rule_;
};

}  // namespace
