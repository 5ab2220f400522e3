// SPDX-License-Identifier: MIT OR Apache-2.0
/* UMEM_DEBUG: random,verbose
   ends: 0
   says:
*/
#include <umem.h>

/* Some caches fill what is free, others do not; and all of them work. */
int main(void) {
  int filled = 0, left = 0;
  for (int i = 0; i < 64; i++) {
    umem_cache_t* cache = umem_cache_create("things", 64, 0, 0, 0, 0, 0, 0, 0);
    volatile unsigned long* p = umem_cache_alloc(cache, UMEM_DEFAULT);
    p[2] = 5;
    umem_cache_free(cache, (void*)p);
    filled += p[2] == 0xdeadbeefdeadbeef;
    left += p[2] == 5;
    umem_cache_destroy(cache);
  }
  for (unsigned long size = 1; size < 150000; size += size / 8 + 1) umem_free(umem_alloc(size, UMEM_DEFAULT), size);
  return filled > 5 && left > 5 ? 0 : 1;
}
