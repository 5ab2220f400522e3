/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* argv: size, value. The first word of a free block is overwritten, then blocks of the size are allocated until it comes out.
 */
#include "misuse.h"

enum { together = 8, attempts = 100000 };

int main(int argc, char** argv) {
  const size_t size = size_argument(argc, argv, 48);
  const uint64_t value = argc > 2 ? strtoull(argv[2], NULL, 0) : 0x4141414141414141;
  void* blocks[together];
  for (int i = 0; i < together; ++i) blocks[i] = allocated(size);
  for (int i = 0; i < together; ++i) free(blocks[i]);
  int i = together - 1;
  while (i > 0 && *(volatile uint64_t*)opaque(blocks[i]) == value) --i; /* where the value is already, nothing would change */
  *(volatile uint64_t*)announce(blocks[i]) = value;
  for (int n = 0; n < attempts; ++n) allocated(size);
  return unnoticed();
}
