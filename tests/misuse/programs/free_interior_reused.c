/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* argv: size of the block, offset into it. The next malloc may lie inside of the live block; nobody knows until its owner has
 * freed it. */
#include "misuse.h"

int main(int argc, char** argv) {
  const size_t size = size_argument(argc, argv, 100);
  const size_t offset = argc > 2 ? strtoull(argv[2], NULL, 0) : 48;
  char* p = allocated(size);
  free(announce(p + offset));
  free(allocated(size));
  push_everything_down();
  return unnoticed();
}
