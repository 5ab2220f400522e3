/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Between the two, other blocks of the size are freed, none is allocated. */
#include "misuse.h"

enum { others = 1000 };

int main(int argc, char** argv) {
  const size_t size = size_argument(argc, argv, 24);
  static void* blocks[others];
  for (int i = 0; i < others; ++i) blocks[i] = allocated(size);
  void* p = announce(allocated(size));
  free(p);
  for (int i = 0; i < others; ++i) free(blocks[i]);
  free(opaque(p));
  push_everything_down();
  return unnoticed();
}
