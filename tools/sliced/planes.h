// A netlist whose every net is a plane of 512 bits: bit k of each belongs to case k, a vector or a faulty copy.

#pragma once
#include <cstddef>
#include <cstdint>

typedef uint64_t plane __attribute__((vector_size(64)));
static const int CASES = 512;

static inline plane all(bool one) {
  const uint64_t word = one ? ~0ull : 0;
  return plane{word, word, word, word, word, word, word, word};
}

// As in gates.py.
enum { AND, OR, XOR, XNOR, NOT, MUX, NAND, NOR, ANDNOT, ORNOT, BUF };

struct Circuit {
  uint32_t nets, first_gate, runs;  // planes 0 and 1 are the constants; gates are the last nets
  const uint32_t *pins;             // the nets A, B and S of each gate
  const uint32_t *run;              // kind, first gate and end of the gates of one kind that follow each other

  void evaluate(plane *v) const {
    const uint32_t *g = pins;
    for (uint32_t at = 0; at < runs; at++) {
      const uint32_t kind = run[3 * at], begin = run[3 * at + 1], end = run[3 * at + 2];
      plane *out = v + first_gate + begin;
#define EACH(expression)                                \
  for (uint32_t k = begin; k < end; k++) {              \
    const plane &A = v[g[3 * k]], &B = v[g[3 * k + 1]]; \
    (void)B;                                            \
    *out++ = expression;                                \
  }                                                     \
  break;
      switch (kind) {
        case AND: EACH(A & B)
        case OR: EACH(A | B)
        case XOR: EACH(A ^ B)
        case XNOR: EACH(~(A ^ B))
        case NOT: EACH(~A)
        case MUX: EACH(A ^ (v[g[3 * k + 2]] & (A ^ B)))
        case NAND: EACH(~(A & B))
        case NOR: EACH(~(A | B))
        case ANDNOT: EACH(A & ~B)
        case ORNOT: EACH(A | ~B)
        case BUF: EACH(A)
      }
#undef EACH
    }
  }
};
