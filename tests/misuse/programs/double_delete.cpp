// SPDX-License-Identifier: MIT OR Apache-2.0
// argv: which pair of operators.
#include "misuse.h"

#include <cstring>
#include <new>

int main(int argc, char** argv) {
  const bool array = argc > 1 && std::strcmp(argv[1], "array") == 0;
  const bool aligned = argc > 1 && std::strcmp(argv[1], "aligned") == 0;
  constexpr std::align_val_t alignment{256};
  void* const p = announce(aligned ? ::operator new(40, alignment) : array ? ::operator new[](40) : ::operator new(40));
  for (int i = 0; i < 2; ++i) {
    if (aligned) {
      ::operator delete(opaque(p), alignment);
    } else if (array) {
      ::operator delete[](opaque(p));
    } else {
      ::operator delete(opaque(p), 40);
    }
  }
  return unnoticed();
}
