// SPDX-License-Identifier: MIT OR Apache-2.0
/* object: umem_malloc
   UMEM_DEBUG: guards,verbose
   ends: SIGABRT
   says:
   umem allocator: buffer modified after being freed
   modification occurred at offset 0x10 (0xdeadbeefdeadbeef replaced by 0xdeadbeefdeadbe01)
   buffer=%p  bufctl=%p  cache: umem_alloc_128
   block of malloc in it: %p
   umem: heap corruption detected
   stack trace:
   ...
*/
#include <stdlib.h>

int main(void) {
  volatile char* p = malloc(100);
  free((void*)p);
  p[0] = 1;
  return malloc(100) == NULL;
}
