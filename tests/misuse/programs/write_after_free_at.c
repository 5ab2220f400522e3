/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* argv: size, offset of the byte that is written, its value. Any part of the block, not only the first word. */
#include "misuse.h"

enum { attempts = 1000 };

int main(int argc, char** argv) {
  const size_t size = size_argument(argc, argv, 100);
  const size_t offset = argc > 2 ? strtoull(argv[2], NULL, 0) : 40;
  char* p = announce(allocated(size));
  free(p);
  ((volatile char*)opaque(p))[offset] = argc > 3 ? (char)atoi(argv[3]) : 1;
  for (int i = 0; i < attempts && size < 100000; ++i) allocated(size);
  push_everything_down();
  return unnoticed();
}
