// SPDX-License-Identifier: MIT OR Apache-2.0
/* UMEM_DEBUG: guards,verbose
   ends: SIGABRT
   says:
   umem allocator: redzone violation: write past end of buffer
   buffer=%p  bufctl=%p  cache: things
   umem: heap corruption detected
   stack trace:
   ...
*/
#include <umem.h>

int main(void) {
  umem_cache_t* cache = umem_cache_create("things", 24, 0, 0, 0, 0, 0, 0, 0);
  char* p = umem_cache_alloc(cache, UMEM_DEFAULT);
  p[24] = 1;
  umem_cache_free(cache, p);
  return 0;
}
