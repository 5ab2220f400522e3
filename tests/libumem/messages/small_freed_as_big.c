// SPDX-License-Identifier: MIT OR Apache-2.0
/* UMEM_DEBUG: guards,verbose
   ends: SIGABRT
   says:
   umem allocator: buffer freed to wrong cache
   buffer was allocated from umem_alloc_112,
   caller attempting free to umem_oversize.
   buffer=%p  bufctl=0x0  cache: umem_oversize
   umem: heap corruption detected
   stack trace:
   ...
*/
#include <umem.h>

#define SIZE 300000

int main(void) {
  umem_free(umem_alloc(100, UMEM_DEFAULT), SIZE);
  return 0;
}
