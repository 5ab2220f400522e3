// SPDX-License-Identifier: MIT OR Apache-2.0
/* UMEM_DEBUG: guards
   ends: SIGABRT
   says:
*/
#include <umem.h>

int main(void) {
  void* p = umem_alloc(32, UMEM_DEFAULT);
  umem_free(p, 32);
  umem_free(p, 32);
  return 0;
}
