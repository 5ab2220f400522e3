/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* No misuse but what an attacker would find: nothing, in the hardened build. 0: order, contents and links tell nothing. */
#include "misuse.h"

enum { count = 64, size = 208 };

static char* blocks[count];

static int in_order(void) {
  int ascending = 0;
  for (int i = 1; i < count; ++i) ascending += blocks[i] > blocks[i - 1];
  return ascending > count - count / 8 || ascending < count / 8;
}

/* Whether the word, shifted by anything, is an address of one of the blocks. */
static int names_a_block(uint64_t word) {
  for (int shift = 0; shift < 16; ++shift) {
    for (int i = 0; i < count; ++i) {
      if (word >> shift == (uintptr_t)blocks[i] || word << shift == (uintptr_t)blocks[i]) return 1;
    }
  }
  return 0;
}

int main(void) {
  for (int i = 0; i < count; ++i) blocks[i] = allocated(size);
  if (in_order()) return 21;
  for (int i = 0; i < count; ++i) memset(blocks[i], 0x55, size);
  for (int i = 0; i < count; ++i) free(blocks[i]);
  for (int i = 0; i < count; ++i) {
    const uint64_t* words = opaque(blocks[i]);
    if (names_a_block(words[0]) || names_a_block(words[1])) return 22;
    for (unsigned w = 2; w < size / sizeof *words; ++w) {
      if (words[w] != 0) return 23;
    }
  }
  for (int i = 0; i < count; ++i) {
    const uint64_t* words = allocated(size);
    if (words[0] != 0 || words[1] != 0) return 24;
  }
  char* large = allocated(1 << 20);
  memset(large, 0x55, 1 << 20);
  free(large);
  for (int i = 0; i < 1 << 20; i += 64) {
    if (((volatile char*)opaque(large))[i] != 0) return 25;
  }
  return unnoticed();
}
