// SPDX-License-Identifier: MIT OR Apache-2.0
/* UMEM_DEBUG: firewall=1000,audit,verbose
   ends: SIGABRT
   says:
   umem allocator: redzone violation: write past end of buffer
   [record of umem_alloc_1152, and the end]
*/
#include <umem.h>

/* Between an object and its page's end, where its alignment leaves bytes. */
int main(void) {
  char* p = umem_alloc(1001, UMEM_DEFAULT);
  p[1001] = 1;
  umem_free(p, 1001);
  return 0;
}
