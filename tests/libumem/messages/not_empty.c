// SPDX-License-Identifier: MIT OR Apache-2.0
/* ends: 0
   says:
   umem_cache_destroy: 'things' (%p) not empty
*/
#include <umem.h>

int main(void) {
  umem_cache_t* cache = umem_cache_create("things", 24, 0, 0, 0, 0, 0, 0, 0);
  umem_cache_alloc(cache, UMEM_DEFAULT);
  umem_cache_destroy(cache);
  return 0;
}
