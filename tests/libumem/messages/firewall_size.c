// SPDX-License-Identifier: MIT OR Apache-2.0
/* UMEM_DEBUG: firewall=64,verbose,noabort
   ends: 0
   says:
   umem allocator: bad free: free size (200) != alloc size (100)
   buffer=%p  bufctl=%p  cache: umem_alloc_112
   umem allocator: bad free: free address (%p) != alloc address (%p)
   buffer=%p  bufctl=%p  cache: things
   umem allocator: buffer freed to wrong cache
   buffer was allocated from things,
   caller attempting free to others.
   buffer=%p  bufctl=0x0  cache: others
*/
#include <umem.h>

int main(void) {
  umem_free(umem_alloc(100, UMEM_DEFAULT), 200);
  umem_cache_t* things = umem_cache_create("things", 100, 0, 0, 0, 0, 0, 0, 0);
  umem_cache_t* others = umem_cache_create("others", 100, 0, 0, 0, 0, 0, 0, 0);
  char* p = umem_cache_alloc(things, UMEM_DEFAULT);
  umem_cache_free(things, p + 8);
  umem_cache_free(others, p);
  umem_cache_free(things, p);
  umem_cache_destroy(things);
  return 0;
}
