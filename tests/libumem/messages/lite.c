// SPDX-License-Identifier: MIT OR Apache-2.0
/* UMEM_DEBUG: lite,audit,firewall=8,verbose
   UMEM_LOGGING: transaction
   ends: SIGABRT
   says:
   umem allocator: UMEM_LOGGING: 'transaction' wants UMEM_DEBUG=audit
   umem allocator: buffer modified after being freed
   modification occurred at offset 0x0 (0xdeadbeefdeadbeef replaced by 0x1)
   buffer=%p  bufctl=%p  cache: things
   umem: heap corruption detected
   stack trace:
   ...
*/
#include <umem.h>

/* Only the first word is looked at; nothing at all of objects of whole KiB; nothing is remembered. */
int main(void) {
  umem_cache_t* cache = umem_cache_create("things", 64, 0, 0, 0, 0, 0, 0, 0);
  umem_cache_t* whole = umem_cache_create("whole", 2048, 0, 0, 0, 0, 0, 0, 0);
  unsigned long* p = umem_cache_alloc(cache, UMEM_DEFAULT);
  unsigned long* q = umem_cache_alloc(whole, UMEM_DEFAULT);
  q[0] = 7;
  umem_cache_free(cache, p);
  umem_cache_free(whole, q);
  if (p[0] != 0xdeadbeefdeadbeef || q[0] != 7) return 1;
  p[1] = 1;
  if (umem_cache_alloc(cache, UMEM_DEFAULT) != p) return 2;
  umem_cache_free(cache, p);
  p[0] = 1;
  umem_cache_alloc(cache, UMEM_DEFAULT);
  return 3;
}
