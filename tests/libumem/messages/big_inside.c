// SPDX-License-Identifier: MIT OR Apache-2.0
/* UMEM_DEBUG: default,verbose
   ends: SIGABRT
   says:
   umem allocator: bad free: free address (%p) != alloc address (%p)
   [record of umem_oversize, and the end]
*/
#include <umem.h>

#define SIZE 300000

int main(void) {
  char* p = umem_alloc(SIZE, UMEM_DEFAULT);
  umem_free(p + 4096, SIZE - 4096);
  return 0;
}
