/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* argv: which pointer. */
#include "misuse.h"

static _Alignas(16) char static_block[64];

int main(int argc, char** argv) {
  _Alignas(16) char stack_block[64];
  char* const block = allocated(4096);
  char* const large = allocated(1 << 20);
  const char* const which = argc > 1 ? argv[1] : "stack";
  void* p = strcmp(which, "static") == 0     ? (void*)static_block
            : strcmp(which, "interior") == 0 ? block + 64
            : strcmp(which, "odd") == 0      ? block + 1
            : strcmp(which, "large") == 0    ? large + 4096
                                             : (void*)stack_block;
  if (opaque(realloc(announce(p), 100)) == NULL) return 6;
  return unnoticed();
}
