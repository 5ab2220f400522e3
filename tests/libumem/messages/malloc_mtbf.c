// SPDX-License-Identifier: MIT OR Apache-2.0
/* object: umem_malloc
   UMEM_DEBUG: guards
   ends: 0
   says:
*/
#include <errno.h>
#include <stdlib.h>
#include <umem.h>

int main(void) {
  umem_setmtbf(1);
  if (malloc(10) != NULL || errno != ENOMEM) return 1;
  if (calloc(10, 10) != NULL || aligned_alloc(64, 64) != NULL) return 2;
  umem_setmtbf(0);
  char* p = malloc(10);
  if (p == NULL) return 3;
  umem_setmtbf(1);
  if (realloc(p, 1000) != NULL) return 4;
  free(p);
  return 0;
}
