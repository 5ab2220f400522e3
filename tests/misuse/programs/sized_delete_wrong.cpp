/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* argv: which operator. The size or the alignment is not what the block was asked for with. */
#include "misuse.h"

#include <new>

int main(int argc, char** argv) {
  const char* const which = argc > 1 ? argv[1] : "plain";
  if (strcmp(which, "plain") == 0) {
    ::operator delete (announce(::operator new(100)), std::size_t{50});
  } else if (strcmp(which, "array") == 0) {
    ::operator delete[](announce(::operator new[](100)), std::size_t{101});
  } else if (strcmp(which, "aligned") == 0) {
    ::operator delete (announce(::operator new (100, std::align_val_t{64})), std::size_t{64}, std::align_val_t{64});
  } else if (strcmp(which, "alignment") == 0) {
    ::operator delete (announce(::operator new (128, std::align_val_t{64})), std::size_t{128}, std::align_val_t{128});
  } else if (strcmp(which, "right") == 0) {  // what programs should do
    ::operator delete (::operator new(100), std::size_t{100});
    ::operator delete[](::operator new[](1000000), std::size_t{1000000});
    ::operator delete (::operator new (100, std::align_val_t{64}), std::size_t{100}, std::align_val_t{64});
    ::operator delete (::operator new (100, std::align_val_t{64}), std::align_val_t{64});
  }
  return unnoticed();
}
