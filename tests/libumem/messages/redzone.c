// SPDX-License-Identifier: MIT OR Apache-2.0
/* UMEM_DEBUG: guards,verbose
   ends: SIGABRT
   says:
   umem allocator: redzone violation: write past end of buffer
   buffer=%p  bufctl=%p  cache: umem_alloc_48
   umem: heap corruption detected
   stack trace:
   ...
*/
#include <umem.h>

int main(void) {
  char* p = umem_alloc(41, UMEM_DEFAULT);
  p[41] = 1;
  umem_free(p, 41);
  return 0;
}
