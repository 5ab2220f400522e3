// SPDX-License-Identifier: MIT OR Apache-2.0
/* UMEM_DEBUG: default,verbose
   ends: SIGABRT
   says:
   umem allocator: duplicate free: buffer freed twice
   [record of pieces, and the end]
*/
#include "arena.h"

int main(void) {
  umem_cache_t* cache = cache_of_arena("pieces", 0);
  char* p = umem_cache_alloc(cache, UMEM_DEFAULT);
  umem_cache_free(cache, p);
  umem_cache_free(cache, p);
  return 0;
}
