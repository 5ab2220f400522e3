// SPDX-License-Identifier: MIT OR Apache-2.0
/* UMEM_OPTIONS: nomagazines
   ends: SIGABRT
   says:
   terrace: umem_cache_free(): double free of %p
   ...
*/
#include <umem.h>

int main(void) {
  umem_cache_t* cache = umem_cache_create("things", 24, 0, 0, 0, 0, 0, 0, 0);
  void* p = umem_cache_alloc(cache, UMEM_DEFAULT);
  void* other = umem_cache_alloc(cache, UMEM_DEFAULT);
  umem_cache_free(cache, p);
  umem_cache_free(cache, other);
  umem_cache_free(cache, p);
  return 0;
}
