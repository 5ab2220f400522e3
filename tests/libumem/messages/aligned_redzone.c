// SPDX-License-Identifier: MIT OR Apache-2.0
/* UMEM_DEBUG: guards,verbose
   ends: SIGABRT
   says:
   umem allocator: redzone violation: write past end of buffer
   buffer=%p  bufctl=%p  cache: umem_alloc_112
   umem: heap corruption detected
   stack trace:
   ...
*/
#include <umem.h>

int main(void) {
  char* p = umem_alloc_align(100, 64, UMEM_DEFAULT);
  p[100] = 1;
  umem_free_align(p, 100);
  return 0;
}
