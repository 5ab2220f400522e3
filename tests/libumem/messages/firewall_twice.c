// SPDX-License-Identifier: MIT OR Apache-2.0
/* UMEM_DEBUG: firewall=1000,verbose
   ends: SIGABRT
   says:
   umem allocator: duplicate free: buffer freed twice
   buffer=%p  bufctl=%p  cache: umem_oversize
   umem: heap corruption detected
   stack trace:
   ...
*/
#include <umem.h>

int main(void) {
  void* p = umem_alloc(1000000, UMEM_DEFAULT);
  umem_free(p, 1000000);
  umem_free(p, 1000000);
  return 0;
}
