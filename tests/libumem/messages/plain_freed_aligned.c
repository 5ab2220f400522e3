// SPDX-License-Identifier: MIT OR Apache-2.0
/* UMEM_DEBUG: guards,verbose
   ends: SIGABRT
   says:
   umem allocator: bad free: memory of umem_alloc() freed by umem_free_align()
   buffer=%p  bufctl=0x0  cache: umem_alloc_112
   umem: heap corruption detected
   stack trace:
   ...
*/
#include <umem.h>

int main(void) {
  umem_free_align(umem_alloc(100, UMEM_DEFAULT), 100);
  return 0;
}
