// SPDX-License-Identifier: MIT OR Apache-2.0
// Memory by size in all ways, then it waits until its input ends. 0: each block was whole.
#include <stdio.h>
#include <string.h>
#include <umem.h>

enum { most = 300, rounds = 3 };

static int is_whole(const unsigned char* p, size_t size) {
  for (size_t i = 0; i < size; ++i) {
    if (p[i] != (unsigned char)size) return 0;
  }
  return 1;
}

/* As umem.h promises. */
static size_t alignment(size_t size) { return size % 64 == 0 ? 64 : size < 16 ? 8 : 16; }

int main(void) {
  static unsigned char* all[most];
  int wrong = 0;
  for (int round = 0; round < rounds; ++round) {
    for (size_t size = 1; size < most; ++size) {
      all[size] = umem_alloc(size, UMEM_DEFAULT);
      if ((size_t)all[size] % alignment(size) != 0) wrong = 1;
      memset(all[size], (int)size, size);
    }
    for (size_t size = 1; size < most; ++size) {
      if (!is_whole(all[size], size)) wrong = 1;
      umem_free(all[size], size);
    }
  }
  puts("");
  fflush(stdout);
  while (getchar() != EOF) {
  }
  return wrong;
}
