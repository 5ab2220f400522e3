// SPDX-License-Identifier: MIT OR Apache-2.0
/* UMEM_DEBUG: guards,verbose
   ends: SIGABRT
   says:
   umem allocator: buffer freed to wrong cache
   buffer was allocated from pieces,
   caller attempting free to others.
   buffer=%p  bufctl=0x0  cache: others
   umem: heap corruption detected
   stack trace:
   ...
*/
#include "arena.h"

int main(void) {
  umem_cache_t* pieces = cache_of_arena("pieces", 0);
  umem_cache_t* others = cache_of_arena("others", 0);
  umem_cache_free(others, umem_cache_alloc(pieces, UMEM_DEFAULT));
  return 0;
}
