// SPDX-License-Identifier: MIT OR Apache-2.0
/* UMEM_DEBUG: guards,verbose,verify,mtbf=x
   UMEM_OPTIONS: backend=mmap,perthread_cache
   ends: 0
   says:
   umem allocator: UMEM_DEBUG: 'verify' is not known
   umem allocator: UMEM_DEBUG: 'mtbf=x' wants a number
   umem allocator: UMEM_OPTIONS: 'backend=mmap' has no meaning on Linux, where memory is one range of addresses
   umem allocator: UMEM_OPTIONS: 'perthread_cache' wants a size
*/
#include <umem.h>

int main(void) {
  umem_free(0, 0);
  return 0;
}
