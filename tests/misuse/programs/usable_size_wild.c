/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "misuse.h"

int main(int argc, char** argv) {
  _Alignas(16) char stack_block[64];
  char* const block = allocated(4096);
  void* p = argc > 1 && strcmp(argv[1], "interior") == 0 ? block + 64 : (void*)stack_block;
  return malloc_usable_size(announce(p)) == 12345;
}
