// SPDX-License-Identifier: MIT OR Apache-2.0
/* UMEM_DEBUG: guards,verbose
   ends: SIGABRT
   says:
   umem allocator: invalid free: buffer not in cache
   buffer=%p  bufctl=0x0  cache: pieces
   umem: heap corruption detected
   stack trace:
   ...
*/
#include "arena.h"

int main(void) {
  umem_cache_t* cache = cache_of_arena("pieces", 0);
  char* p = umem_cache_alloc(cache, UMEM_DEFAULT);
  umem_cache_free(cache, p + 64);
  return 0;
}
