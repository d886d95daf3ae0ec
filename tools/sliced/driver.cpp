// Vectors in, vectors out: 512 at a time are turned into planes, one for each bit, and back.

#include <cstdint>
#include <cstring>

using word = uint32_t;
// Bit b of word w belongs to vector 16 * b + w.
typedef word plane __attribute__((vector_size(64)));

static const uint64_t VECTORS = 512;

// Swap the upper `distance` bits of each group of 2 * distance with the lower ones of the word that many rows below.
template <int distance, word mask>
static inline void swap_blocks(plane *rows) {
  for (int group = 0; group < 32; group += 2 * distance)
    for (int row = group; row < group + distance; row++) {
      const plane differ = ((rows[row] >> distance) ^ rows[row + distance]) & mask;
      rows[row] ^= differ << distance;
      rows[row + distance] ^= differ;
    }
}

// Transpose 32 x 32 bits in each of the 16 words.
static inline void transpose(plane *rows) {
  swap_blocks<16, 0x0000FFFF>(rows);
  swap_blocks<8, 0x00FF00FF>(rows);
  swap_blocks<4, 0x0F0F0F0F>(rows);
  swap_blocks<2, 0x33333333>(rows);
  swap_blocks<1, 0x55555555>(rows);
}

static void evaluate(const plane *in, plane *out);

extern "C" void run(uint64_t count, const word *const *inputs, word *const *outputs) {
  plane in[32 * INPUTS], out[32 * OUTPUTS];
  for (uint64_t first = 0; first < count; first += VECTORS) {
    const uint64_t bytes = sizeof(word) * (count - first < VECTORS ? count - first : VECTORS);
    for (int port = 0; port < INPUTS; port++) {
      if (bytes < sizeof(word) * VECTORS) memset(in + 32 * port, 0, sizeof(word) * VECTORS);
      memcpy(in + 32 * port, inputs[port] + first, bytes);
      transpose(in + 32 * port);
    }
    evaluate(in, out);
    for (int port = 0; port < OUTPUTS; port++) {
      transpose(out + 32 * port);
      memcpy(outputs[port] + first, out + 32 * port, bytes);
    }
  }
}

