// SPDX-License-Identifier: MIT OR Apache-2.0
/* UMEM_DEBUG: default,verbose
   ends: SIGABRT
   says:
   umem allocator: buffer modified after being freed
   modification occurred at offset 0x8 (0xdeadbeefdeadbeef replaced by 0x1234)
   [record of umem_alloc_48, and the end]
*/
#include <umem.h>

int main(void) {
  unsigned long* p = umem_alloc(48, UMEM_DEFAULT);
  umem_free(p, 48);
  p[1] = 0x1234;
  umem_alloc(48, UMEM_DEFAULT);
  return 0;
}
