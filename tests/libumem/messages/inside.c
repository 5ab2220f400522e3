// SPDX-License-Identifier: MIT OR Apache-2.0
/* UMEM_DEBUG: guards,verbose
   ends: SIGABRT
   says:
   umem allocator: bad free: free address (%p) != alloc address (%p)
   buffer=%p  bufctl=0x0  cache: things
   umem: heap corruption detected
   stack trace:
   ...
*/
#include <umem.h>

int main(void) {
  umem_cache_t* cache = umem_cache_create("things", 64, 0, 0, 0, 0, 0, 0, 0);
  char* p = umem_cache_alloc(cache, UMEM_DEFAULT);
  umem_cache_free(cache, p + 16);
  return 0;
}
