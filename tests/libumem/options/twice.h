// SPDX-License-Identifier: MIT OR Apache-2.0
// An object of 100 bytes that is freed twice: the message names its cache.
#include <umem.h>

enum { bytes = 100 };

int main(void) {
  void* p = umem_alloc(bytes, UMEM_DEFAULT);
  umem_free(p, bytes);
  umem_free(p, bytes);
  return 0;
}
