// What rounding.py says in NumPy: float32 codes of one sign and exponent field, rounded to nearest, ties to even.

#include <cstdint>

using word = uint32_t;

static const int FRACTION = 23, BIAS = 127, FIELD_MAX = 255;
enum { INEXACT = 1, UNDERFLOW = 2, OVERFLOW = 4, INVALID = 16 };

extern "C" void round_float32(word first, word count, int exponent_bits, int fraction_bits, int bias, word tiny_below,
                              word *codes, word *flags) {
  const word infinity = ((word(1) << exponent_bits) - 1) << fraction_bits;
  const word negative = first >> 31 << (exponent_bits + fraction_bits);
  const int field = first >> FRACTION & FIELD_MAX;
  const word ones = (word(1) << FRACTION) - 1;

  if (field == FIELD_MAX) {
    const word nan = infinity | word(1) << (fraction_bits - 1);
    for (word k = 0; k < count; k++) {
      const word fraction = (first + k) & ones;
      codes[k] = fraction ? nan : infinity | negative;
      flags[k] = fraction && !(fraction >> (FRACTION - 1)) ? INVALID : 0;
    }
    return;
  }
  const int exponent = (field ? field : 1) - BIAS;
  const int lowest_normal = 1 - bias, highest = (1 << exponent_bits) - 2 - bias;
  if (exponent > highest) {
    for (word k = 0; k < count; k++) {
      codes[k] = infinity | negative;
      flags[k] = OVERFLOW | INEXACT;
    }
    return;
  }
  const int lowest = exponent > lowest_normal ? exponent : lowest_normal;
  const word leading = field ? ones + 1 : 0;
  const int drop = lowest - fraction_bits - (exponent - FRACTION);
  if (drop > FRACTION + 2) {
    for (word k = 0; k < count; k++) {
      codes[k] = negative;
      flags[k] = (((first + k) & ones) | leading) ? UNDERFLOW | INEXACT : 0;
    }
    return;
  }
  const word base = word(lowest - lowest_normal) << fraction_bits;
  const word below = (word(1) << drop) - 1, half = drop ? word(1) << drop >> 1 : 1;
  for (word k = 0; k < count; k++) {
    const word magnitude = (first + k) & 0x7FFFFFFF, significand = (magnitude & ones) | leading;
    const word kept = significand >> drop, rest = significand & below;
    const word code = base + kept + (rest + (kept & 1) > half);
    const word is_inexact = rest != 0;
    codes[k] = code | negative;
    flags[k] = is_inexact | (is_inexact & (magnitude < tiny_below)) << 1 | word(code == infinity) << 2;
  }
}

typedef void (*Run)(const void *, uint64_t, const word *const *, word *const *);

// Of `count` inputs from `first`, how many a netlist converts to the same code and the same flags.
extern "C" uint64_t count_alike(word first, uint64_t count, int exponent_bits, int fraction_bits, int bias,
                                word tiny_below, Run run, const void *unit) {
  const uint64_t PIECE = 2048;
  word inputs[PIECE], codes[PIECE], flags[PIECE], wanted_codes[PIECE], wanted_flags[PIECE];
  const word *const in[] = {inputs};
  word *const out[] = {codes, flags};
  uint64_t alike = 0;
  for (uint64_t done = 0; done < count; done += PIECE) {
    const word size = count - done < PIECE ? count - done : PIECE, start = first + word(done);
    for (word k = 0; k < size; k++) inputs[k] = start + k;
    run(unit, size, in, out);
    round_float32(start, size, exponent_bits, fraction_bits, bias, tiny_below, wanted_codes, wanted_flags);
    word same = 0;
    for (word k = 0; k < size; k++) same += (codes[k] == wanted_codes[k]) & (flags[k] == wanted_flags[k]);
    alike += same;
  }
  return alike;
}
