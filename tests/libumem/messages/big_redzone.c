// SPDX-License-Identifier: MIT OR Apache-2.0
/* UMEM_DEBUG: default,verbose
   UMEM_DEBUG: audit,verbose
   ends: SIGABRT
   says:
   umem allocator: redzone violation: write past end of buffer
   [record of umem_oversize, and the end]
*/
#include <umem.h>

#define SIZE 300001

int main(void) {
  char* p = umem_alloc(SIZE, UMEM_DEFAULT);
  p[SIZE] = 1;
  umem_free(p, SIZE);
  return 0;
}
