// SPDX-License-Identifier: MIT OR Apache-2.0
/* UMEM_DEBUG: guards,allverbose
   UMEM_LOGGING: fail=32k
   UMEM_OPTIONS: size_clear
   on glibc
   ends: 0
   says:
   umem allocator: log fail: %d bytes
   umem allocator: cache umem_alloc_131072: 131072 bytes, debug 6
   umem allocator: cache things: 100 bytes, debug 6
   umem allocator: cache things is destroyed
   umem allocator: caches are reaped
*/
#include <umem.h>

int main(void) {
  umem_cache_destroy(umem_cache_create("things", 100, 0, 0, 0, 0, 0, 0, 0));
  umem_reap();
  return 0;
}
