// SPDX-License-Identifier: MIT OR Apache-2.0
/* UMEM_DEBUG: audit=500,verbose
   ends: 0
   says:
   umem allocator: UMEM_DEBUG: 'audit=500' asks for more frames than the 32 that are kept
*/
#include <umem.h>

int main(void) {
  umem_free(umem_alloc(100, UMEM_DEFAULT), 100);
  return 0;
}
