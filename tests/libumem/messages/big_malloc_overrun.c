// SPDX-License-Identifier: MIT OR Apache-2.0
/* object: umem_malloc
   UMEM_DEBUG: default,verbose
   ends: SIGABRT
   says:
   umem allocator: redzone violation: write past end of buffer
   buffer=%p  bufctl=%p  cache: umem_oversize
   block of malloc in it: %p
   previous transaction on buffer %p:
   thread=%d  time=T-%d.%d  slab=%p  cache: umem_oversize
   ...
   umem: heap corruption detected
   stack trace:
   ...
*/
#include <stdlib.h>

#define SIZE 300001

int main(void) {
  volatile char* p = malloc(SIZE);
  p[SIZE] = 1;
  free((void*)p);
  return 0;
}
