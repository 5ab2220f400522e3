/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* argv: size, new size. */
#include "misuse.h"

int main(int argc, char** argv) {
  const size_t size = size_argument(argc, argv, 48);
  const size_t wanted = argc > 2 ? strtoull(argv[2], NULL, 0) : 100;
  void* p = announce(allocated(size));
  free(p);
  if (opaque(realloc(opaque(p), wanted)) == NULL) return 6;
  push_everything_down();
  return unnoticed();
}
