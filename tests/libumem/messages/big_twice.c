// SPDX-License-Identifier: MIT OR Apache-2.0
/* UMEM_DEBUG: default,verbose
   ends: SIGABRT
   says:
   umem allocator: duplicate free: buffer freed twice
   [record of umem_oversize, and the end]
*/
#include <umem.h>

#define SIZE 300000

int main(void) {
  void* p = umem_alloc(SIZE, UMEM_DEFAULT);
  umem_free(p, SIZE);
  umem_free(p, SIZE);
  return 0;
}
