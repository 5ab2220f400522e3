// SPDX-License-Identifier: MIT OR Apache-2.0
/* UMEM_DEBUG: default,verbose
   ends: SIGABRT
   says:
   umem allocator: bad free: free size (8) != alloc size (300000)
   [record of umem_oversize, and the end]
*/
#include <umem.h>

#define SIZE 300000

int main(void) {
  umem_free(umem_alloc(SIZE, UMEM_DEFAULT), 8);
  return 0;
}
