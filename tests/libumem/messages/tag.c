// SPDX-License-Identifier: MIT OR Apache-2.0
/* UMEM_DEBUG: guards,verbose
   ends: SIGABRT
   says:
   umem allocator: boundary tag corrupted
   bcp ^ bxstat = %x, should be a110c8eda110c8ed
   buffer=%p  bufctl=0x0  cache: things
   umem: heap corruption detected
   stack trace:
   ...
*/
#include <string.h>
#include <umem.h>

int main(void) {
  umem_cache_t* cache = umem_cache_create("things", 24, 0, 0, 0, 0, 0, 0, 0);
  char* p = umem_cache_alloc(cache, UMEM_DEFAULT);
  memset(p, 'x', 48);
  umem_cache_free(cache, p);
  return 0;
}
