// SPDX-License-Identifier: MIT OR Apache-2.0
/* UMEM_DEBUG: default,verbose
   ends: SIGABRT
   says:
   umem allocator: duplicate free: buffer freed twice
   [record of umem_alloc_32, and the end]
*/
#include <umem.h>

int main(void) {
  void* p = umem_alloc(32, UMEM_DEFAULT);
  umem_free(p, 32);
  umem_free(p, 32);
  return 0;
}
