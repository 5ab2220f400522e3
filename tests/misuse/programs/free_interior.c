/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* argv: size of the block, offset into it. */
#include "misuse.h"

int main(int argc, char** argv) {
  const size_t size = size_argument(argc, argv, 256);
  const size_t offset = argc > 2 ? strtoull(argv[2], NULL, 0) : 16;
  char* p = allocated(size);
  memset(p, 0x55, size);
  free(announce(p + offset));
  push_everything_down();
  return unnoticed();
}
