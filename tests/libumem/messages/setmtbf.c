// SPDX-License-Identifier: MIT OR Apache-2.0
/* ends: 0
   says:
*/
#include <umem.h>

/* Without UMEM_DEBUG no allocation fails on purpose: not in fast paths, nor elsewhere. */
int main(void) {
  umem_setmtbf(1);
  umem_cache_t *cache = umem_cache_create("things", 24, 0, 0, 0, 0, 0, 0, 0);
  return umem_alloc(10, UMEM_DEFAULT) == 0 || umem_alloc(5000000, UMEM_DEFAULT) == 0 || umem_cache_alloc(cache, UMEM_DEFAULT) == 0;
}
