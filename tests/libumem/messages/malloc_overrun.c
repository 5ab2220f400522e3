// SPDX-License-Identifier: MIT OR Apache-2.0
/* object: umem_malloc
   UMEM_DEBUG: guards,verbose
   ends: SIGABRT
   says:
   umem allocator: redzone violation: write past end of buffer
   buffer=%p  bufctl=%p  cache: umem_alloc_128
   block of malloc in it: %p
   umem: heap corruption detected
   stack trace:
   ...
*/
#include <stdlib.h>

int main(void) {
  volatile char* p = malloc(100);
  p[100] = 1;
  free((void*)p);
  return 0;
}
