/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The block, and its page, went back to the global level in between. */
#include "misuse.h"

enum { others = 100 };

int main(int argc, char** argv) {
  const size_t size = size_argument(argc, argv, 24);
  static void* blocks[others];
  for (int i = 0; i < others; ++i) blocks[i] = allocated(size);
  void* p = announce(allocated(size));
  free(p);
  for (int i = 0; i < others; i += 2) free(blocks[i]);
  push_everything_down();
  free(opaque(p));
  push_everything_down();
  return unnoticed();
}
