/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* operator new of a size that can not be: the exception, or null from the form that does not throw. */
#include "misuse.h"

#include <initializer_list>
#include <new>

int main() {
  for (const std::size_t size : {~std::size_t{0}, ~std::size_t{0} - 63, std::size_t{1} << 63}) {
    for (const bool aligned : {false, true}) {
      try {
        opaque(aligned ? ::operator new (size, std::align_val_t{64}) : ::operator new(size));
        return 11;
      } catch (const std::bad_alloc&) {
      }
      if (opaque(aligned ? ::operator new (size, std::align_val_t{64}, std::nothrow) : ::operator new(size, std::nothrow)))
        return 12;
    }
  }
  push_everything_down();
  return 0;
}
