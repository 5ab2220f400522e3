// SPDX-License-Identifier: MIT OR Apache-2.0
/* UMEM_DEBUG: default,verbose
   ends: SIGABRT
   says:
   umem allocator: bad free: memory of umem_alloc_align() freed by umem_free()
   [record of umem_alloc_112, and the end]
*/
#include <umem.h>

int main(void) {
  umem_free(umem_alloc_align(100, 64, UMEM_DEFAULT), 100);
  return 0;
}
