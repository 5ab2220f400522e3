// SPDX-License-Identifier: MIT OR Apache-2.0
/* UMEM_DEBUG: guards,mtbf=1
   ends: 0
   says:
*/
#include <errno.h>
#include <umem.h>

int main(void) {
  if (umem_alloc(10, UMEM_DEFAULT) != 0 || errno != ENOMEM) return 1;
  if (umem_alloc(10, UMEM_NOFAIL) == 0) return 2;
  umem_setmtbf(0);
  return umem_alloc(10, UMEM_DEFAULT) == 0;
}
