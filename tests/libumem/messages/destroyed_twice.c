// SPDX-License-Identifier: MIT OR Apache-2.0
/* ends: SIGABRT
   says:
   terrace: umem_cache_destroy(): double free of %p
   ...
*/
#include <umem.h>

int main(void) {
  umem_cache_t* cache = umem_cache_create("things", 24, 0, 0, 0, 0, 0, 0, 0);
  umem_cache_create("others", 24, 0, 0, 0, 0, 0, 0, 0);
  umem_cache_destroy(cache);
  umem_cache_destroy(cache);
  return 0;
}
