// SPDX-License-Identifier: MIT OR Apache-2.0
/* UMEM_DEBUG: guards,verbose
   ends: SIGABRT
   says:
   umem allocator: bufctl corrupted
   buffer=%p  bufctl=0x0  cache: things
   umem: heap corruption detected
   stack trace:
   ...
*/
#include <umem.h>

/* Somebody who writes over a tag, and by chance so that its two halves fit together. */
int main(void) {
  umem_cache_t* cache = umem_cache_create("things", 24, 0, 0, 0, 0, 0, 0, 0);
  unsigned long* p = umem_cache_alloc(cache, UMEM_DEFAULT);
  p[4] ^= 0x1000;
  p[5] ^= 0x1000;
  umem_cache_free(cache, p);
  return 0;
}
