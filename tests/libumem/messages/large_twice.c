// SPDX-License-Identifier: MIT OR Apache-2.0
/* UMEM_DEBUG: default,verbose
   ends: SIGABRT
   says:
   umem allocator: duplicate free: buffer freed twice
   [record of large, and the end]
*/
#include <umem.h>

#define SIZE 270000

int main(void) {
  umem_cache_t* cache = umem_cache_create("large", SIZE, 0, 0, 0, 0, 0, 0, 0);
  char* p = umem_cache_alloc(cache, UMEM_DEFAULT);
  umem_cache_free(cache, p);
  umem_cache_free(cache, p);
  return 0;
}
