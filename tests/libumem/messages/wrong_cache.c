// SPDX-License-Identifier: MIT OR Apache-2.0
/* UMEM_DEBUG: guards,verbose
   ends: SIGABRT
   says:
   umem allocator: buffer freed to wrong cache
   buffer was allocated from things,
   caller attempting free to others.
   buffer=%p  bufctl=0x0  cache: others
   umem: heap corruption detected
   stack trace:
   ...
*/
#include <umem.h>

int main(void) {
  umem_cache_t* things = umem_cache_create("things", 24, 0, 0, 0, 0, 0, 0, 0);
  umem_cache_t* others = umem_cache_create("others", 24, 0, 0, 0, 0, 0, 0, 0);
  umem_cache_free(others, umem_cache_alloc(things, UMEM_DEFAULT));
  return 0;
}
