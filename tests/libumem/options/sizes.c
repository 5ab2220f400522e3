// SPDX-License-Identifier: MIT OR Apache-2.0
/* UMEM_OPTIONS: size_add=97 -> umem_alloc_104
   UMEM_OPTIONS: size_remove=112 -> umem_alloc_128
   UMEM_OPTIONS: size_clear -> umem_alloc_131072
   UMEM_OPTIONS: size_clear,size_add=64,size_add=1k -> umem_alloc_1024
   UMEM_OPTIONS: size_add=104,size_clear,size_add=8k -> umem_alloc_8192
   UMEM_DEBUG: guards,verbose
   ends: SIGABRT
   says:
   umem allocator: duplicate free: buffer freed twice
   buffer=%p  bufctl=%p  cache: CACHE
   umem: heap corruption detected
   stack trace:
   ...
*/
// An object of 100 bytes that is freed twice: the message names its cache.
#include <umem.h>

enum { bytes = 100 };

int main(void) {
  void* p = umem_alloc(bytes, UMEM_DEFAULT);
  umem_free(p, bytes);
  umem_free(p, bytes);
  return 0;
}
