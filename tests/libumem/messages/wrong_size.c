// SPDX-License-Identifier: MIT OR Apache-2.0
/* UMEM_DEBUG: guards,verbose
   ends: SIGABRT
   says:
   umem allocator: bad free: free size (42) != alloc size (41)
   buffer=%p  bufctl=%p  cache: umem_alloc_48
   umem: heap corruption detected
   stack trace:
   ...
*/
#include <umem.h>

int main(void) {
  umem_free(umem_alloc(41, UMEM_DEFAULT), 42);
  return 0;
}
