// SPDX-License-Identifier: MIT OR Apache-2.0
/* UMEM_DEBUG: default,verbose,noabort
   ends: 0
   says:
   umem allocator: boundary tag corrupted
   bcp ^ bxstat = 0, should be f4eef4eef4eef4ee
   buffer=%p  bufctl=0x0  cache: things
*/
#include <string.h>
#include <umem.h>

/* Who wrote behind a free object has left nothing of its record; with `noabort` the object is used all the same. */
int main(void) {
  umem_cache_t *cache = umem_cache_create("things", 24, 0, 0, 0, 0, 0, 0, 0);
  char *p = umem_cache_alloc(cache, UMEM_DEFAULT);
  umem_cache_free(cache, p);
  memset(p + 24, 'x', 24);
  p = umem_cache_alloc(cache, UMEM_DEFAULT);
  if (p == 0) return 1;
  umem_cache_free(cache, p);
  return 0;
}
