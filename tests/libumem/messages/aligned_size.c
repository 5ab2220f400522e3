// SPDX-License-Identifier: MIT OR Apache-2.0
/* UMEM_DEBUG: default,verbose
   ends: SIGABRT
   says:
   umem allocator: bad free: free size (99) != alloc size (100)
   [record of umem_alloc_112, and the end]
*/
#include <umem.h>

int main(void) {
  char* p = umem_alloc_align(100, 256, UMEM_DEFAULT);
  if ((size_t)p % 256 != 0) return 1;
  umem_free_align(p, 100);
  umem_free_align(umem_alloc_align(100, 256, UMEM_DEFAULT), 99);
  return 0;
}
