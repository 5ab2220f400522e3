// SPDX-License-Identifier: MIT OR Apache-2.0
/* UMEM_DEBUG: guards,verbose,noabort
   ends: 0
   says:
   umem allocator: duplicate free: buffer freed twice
   buffer=%p  bufctl=%p  cache: umem_alloc_32
*/
#include <umem.h>

int main(void) {
  void* p = umem_alloc(32, UMEM_DEFAULT);
  umem_free(p, 32);
  umem_free(p, 32);
  return umem_alloc(32, UMEM_DEFAULT) == umem_alloc(32, UMEM_DEFAULT); /* not handed out twice */
}
