// SPDX-License-Identifier: MIT OR Apache-2.0
/* UMEM_DEBUG: default,verbose
   ends: 0
   says:
*/
#include "arena.h"

#include <assert.h>
#include <string.h>

/* Numbers that are no addresses, and objects that have to be all of a piece. */
int main(void) {
  umem_cache_t* cache = cache_of_arena("pieces", UMC_NOTOUCH);
  vmem_t* numbers = vmem_create("numbers", (void*)1, 100, 1, 0, 0, 0, 0, VM_NOSLEEP);
  umem_cache_t* ids = umem_cache_create("ids", 1, 0, 0, 0, 0, 0, numbers, UMC_NOTOUCH);
  char* p = umem_cache_alloc(cache, UMEM_DEFAULT);
  memset(p, 7, 128);
  umem_cache_free(cache, p);
  for (int i = 0; i < 128; ++i) assert(p[i] == 7);
  void* id = umem_cache_alloc(ids, UMEM_DEFAULT);
  assert(id != 0 && (unsigned long)id <= 100);
  umem_cache_free(ids, id);
  umem_cache_destroy(ids);
  umem_cache_destroy(cache);
  assert(vmem_size(numbers, VMEM_ALLOC) == 0);
  return 0;
}
