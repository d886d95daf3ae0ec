// Multiplies pseudo-random matrices in main RAM with the engine, and prints the CRC-32 of each product. `judge.py` has the
// same operands, and golden's products.
#include <stdint.h>

#include "csr.h"
#include "matrix_engine.h"

#define REGISTER(name) (*(volatile uint32_t *)(ENGINE_BASE + MATRIX_ENGINE_##name))
#define UART(name) (*(volatile uint32_t *)CSR_UART_##name##_ADDR)

static uint16_t *const a = (uint16_t *)MAIN_RAM_BASE;
static uint16_t *const b = (uint16_t *)(MAIN_RAM_BASE + 0x4000);
static uint32_t *const d = (uint32_t *)(MAIN_RAM_BASE + 0x8000);
static volatile uint32_t result, interrupts;

static void put(char character) {
  while (UART(TXFULL)) {}
  UART(RXTX) = (uint8_t)character;
}

static void print(const char *text) {
  while (*text) put(*text++);
}

static void print_hex(uint32_t word) {
  for (int shift = 28; shift >= 0; shift -= 4) put("0123456789abcdef"[word >> shift & 15]);
}

// The engine reads and writes past the processor's data cache. It writes through, so that A and B are in memory.
static void forget_cache(void) { __asm__ volatile(".word 0x500f; nop; nop; nop; nop; nop" ::: "memory"); }

__attribute__((interrupt)) void handler(void) {
  result = REGISTER(RESULT);
  REGISTER(RESULT) = 0; // the interrupt falls
  interrupts++;
}

static uint32_t noise;

// Marsaglia's xorshift. Signs and fractions are random, exponents around that of 1.0.
static uint16_t random_code(void) {
  noise ^= noise << 13, noise ^= noise >> 17, noise ^= noise << 5;
  return (noise & 0x81ff) | (27 + (noise >> 16) % 8) << 9;
}

static uint32_t crc32(const uint32_t *words, uint32_t count) {
  uint32_t crc = 0xffffffff;
  for (uint32_t at = 0; at < count; at++) {
    crc ^= words[at];
    for (int bit = 0; bit < 32; bit++) crc = crc >> 1 ^ (crc & 1 ? 0xedb88320 : 0);
  }
  return ~crc;
}

static unsigned multiply(uint32_t m, uint32_t n, uint32_t k, uint32_t level) {
  result = 0;
  REGISTER(M) = m, REGISTER(N) = n, REGISTER(K) = k, REGISTER(BATCHES) = 1;
  REGISTER(A_ADDRESS) = (uint32_t)a, REGISTER(A_ADDRESS_HIGH) = 0, REGISTER(A_ROW_STRIDE) = 2 * k;
  REGISTER(B_ADDRESS) = (uint32_t)b, REGISTER(B_ADDRESS_HIGH) = 0, REGISTER(B_ROW_STRIDE) = 2 * n;
  REGISTER(D_ADDRESS) = (uint32_t)d, REGISTER(D_ADDRESS_HIGH) = 0, REGISTER(D_ROW_STRIDE) = 4 * n;
  REGISTER(OPTIONS) = MATRIX_ENGINE_FORMAT_CBFLOAT16 << MATRIX_ENGINE_OPTIONS_FORMAT_SHIFT |
                      level << MATRIX_ENGINE_OPTIONS_LEVEL_SHIFT;
  REGISTER(CHUNK) = 32;
  REGISTER(SUBMIT) = 1;
  while (!result) {}
  return (result & MATRIX_ENGINE_RESULT_ERROR_MASK) >> MATRIX_ENGINE_RESULT_ERROR_SHIFT;
}

void main(void) {
  static const uint8_t sizes[][3] = SIZES; // m, n, k
  noise = 0x2545f491;
  REGISTER(INTERRUPT) = MATRIX_ENGINE_INTERRUPT_ENABLE_MASK;
  __asm__ volatile("csrw 0xbc0, %0" ::"r"(1u << ENGINE_INTERRUPT)); // the mask of this processor's interrupt controller
  __asm__ volatile("csrs mie, %0" ::"r"(1u << 11));
  __asm__ volatile("csrsi mstatus, 8");
  for (uint32_t at = 0; at < sizeof sizes / sizeof *sizes; at++) {
    uint32_t m = sizes[at][0], n = sizes[at][1], k = sizes[at][2];
    for (uint32_t level = 0; level < 2; level++) {
      for (uint32_t each = 0; each < m * k; each++) a[each] = random_code();
      for (uint32_t each = 0; each < k * n; each++) b[each] = random_code();
      unsigned error = multiply(m, n, k, level);
      forget_cache();
      print("product "), print_hex(error), put(' '), print_hex(crc32(d, m * n)), put('\n');
    }
  }
  print("interrupts "), print_hex(interrupts), put('\n');
  print("end\n");
}
