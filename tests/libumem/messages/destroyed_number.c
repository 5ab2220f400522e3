// SPDX-License-Identifier: MIT OR Apache-2.0
/* ends: SIGABRT
   says:
   terrace: umem_cache_destroy(): invalid pointer %p
   ...
*/
#include <umem.h>

int main(void) {
  static long nothing[64];
  umem_cache_destroy((umem_cache_t*)nothing);
  return 0;
}
