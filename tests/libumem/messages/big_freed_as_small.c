// SPDX-License-Identifier: MIT OR Apache-2.0
/* object: umem
   UMEM_DEBUG: default,verbose
   ends: SIGABRT
   says:
   umem allocator: bad free: free size (8) != alloc size (300000)
   buffer=%p  bufctl=%p  cache: umem_oversize
   previous transaction on buffer %p:
   thread=%d  time=T-%d.%d  slab=%p  cache: umem_oversize
   ...
   umem: heap corruption detected
   stack trace:
   ...
*/
#include <umem.h>

#define SIZE 300000

int main(void) {
  umem_free(umem_alloc(SIZE, UMEM_DEFAULT), 8);
  return 0;
}
