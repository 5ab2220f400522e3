// SPDX-License-Identifier: MIT OR Apache-2.0
/* UMEM_DEBUG: checknull,verbose
   ends: SIGABRT
   says:
   umem: out of heap space
   stack trace:
   ...
*/
#include <umem.h>

int main(void) {
  umem_alloc(~0UL / 2, UMEM_DEFAULT);
  return 0;
}
