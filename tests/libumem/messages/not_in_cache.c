// SPDX-License-Identifier: MIT OR Apache-2.0
/* UMEM_DEBUG: guards,verbose
   ends: SIGABRT
   says:
   umem allocator: invalid free: buffer not in cache
   buffer=%p  bufctl=0x0  cache: things
   umem: heap corruption detected
   stack trace:
   ...
*/
#include <umem.h>

int main(void) {
  umem_cache_t* cache = umem_cache_create("things", 24, 0, 0, 0, 0, 0, 0, 0);
  long own[4];
  umem_cache_free(cache, own);
  return 0;
}
