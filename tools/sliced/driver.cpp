// Vectors in, vectors out: 512 at a time are turned into planes, one for each bit, and back.

#include <cstdlib>
#include <cstring>

using word = uint32_t;
// Bit b of word w belongs to vector 16 * b + w.
typedef word words __attribute__((vector_size(64), may_alias));

// Swap the upper `distance` bits of each group of 2 * distance with the lower ones of the word that many rows below.
template <int distance, word mask>
static inline void swap_blocks(words *rows) {
  for (int group = 0; group < 32; group += 2 * distance)
    for (int row = group; row < group + distance; row++) {
      const words differ = ((rows[row] >> distance) ^ rows[row + distance]) & mask;
      rows[row] ^= differ << distance;
      rows[row + distance] ^= differ;
    }
}

// Transpose 32 x 32 bits in each of the 16 words.
static inline void transpose(words *rows) {
  swap_blocks<16, 0x0000FFFF>(rows);
  swap_blocks<8, 0x00FF00FF>(rows);
  swap_blocks<4, 0x0F0F0F0F>(rows);
  swap_blocks<2, 0x33333333>(rows);
  swap_blocks<1, 0x55555555>(rows);
}

extern "C" void evaluate(const Circuit *circuit, plane *values) { circuit->evaluate(values); }

struct Unit {
  const Circuit *circuit;
  uint64_t inputs, outputs;
  const uint32_t *result;  // the nets of each output, 32 of them
};

// The planes of the inputs stand behind the constants, 32 for each.
extern "C" void run(const Unit *unit, uint64_t count, const word *const *inputs, word *const *outputs) {
  plane *v = static_cast<plane *>(aligned_alloc(64, sizeof(plane) * unit->circuit->nets)), out[32];
  v[0] = all(false);
  v[1] = all(true);
  for (uint64_t first = 0; first < count; first += CASES) {
    const size_t bytes = sizeof(word) * (count - first < CASES ? count - first : CASES);
    for (uint64_t port = 0; port < unit->inputs; port++) {
      plane *in = v + 2 + 32 * port;
      if (bytes < sizeof(word) * CASES) memset(in, 0, sizeof(word) * CASES);
      memcpy(in, inputs[port] + first, bytes);
      transpose(reinterpret_cast<words *>(in));
    }
    unit->circuit->evaluate(v);
    for (uint64_t port = 0; port < unit->outputs; port++) {
      for (int bit = 0; bit < 32; bit++) out[bit] = v[unit->result[32 * port + bit]];
      transpose(reinterpret_cast<words *>(out));
      memcpy(outputs[port] + first, out, bytes);
    }
  }
  free(v);
}
