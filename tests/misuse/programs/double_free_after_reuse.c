/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The second free comes when malloc has handed the block out again: to somebody else, who goes on using it. */
#include "misuse.h"

int main(int argc, char** argv) {
  const size_t size = size_argument(argc, argv, 48);
  void* p = announce(allocated(size));
  free(p);
  char* owner = allocated(size);
  free(opaque(p));
  memset(owner, 0x55, size);
  return unnoticed();
}
