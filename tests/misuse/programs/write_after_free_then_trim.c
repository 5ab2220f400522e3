/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The same, but nobody allocates: the magazine comes to the global level as it is. */
#include "misuse.h"

enum { together = 8 };

int main(int argc, char** argv) {
  const size_t size = size_argument(argc, argv, 48);
  void* blocks[together];
  for (int i = 0; i < together; ++i) blocks[i] = allocated(size);
  for (int i = 0; i < together; ++i) free(blocks[i]);
  *(volatile uint64_t*)announce(blocks[together - 1]) = 0x4141414141414141;
  push_everything_down();
  return unnoticed();
}
