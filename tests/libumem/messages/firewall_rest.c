// SPDX-License-Identifier: MIT OR Apache-2.0
/* object: umem
   UMEM_DEBUG: firewall=1000,audit,verbose
   ends: SIGABRT
   says:
   umem allocator: redzone violation: write past end of buffer
   buffer=%p  bufctl=%p  cache: umem_alloc_1152
   previous transaction on buffer %p:
   thread=%d  time=T-%d.%d  slab=%p  cache: umem_alloc_1152
   ...
   umem: heap corruption detected
   stack trace:
   ...
*/
#include <umem.h>

/* Between an object and its page's end, where its alignment leaves bytes. */
int main(void) {
  char* p = umem_alloc(1001, UMEM_DEFAULT);
  p[1001] = 1;
  umem_free(p, 1001);
  return 0;
}
