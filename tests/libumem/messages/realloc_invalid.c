// SPDX-License-Identifier: MIT OR Apache-2.0
/* object: umem_malloc
   UMEM_DEBUG: guards,verbose,noabort
   ends: 0
   says:
   realloc(%p): invalid or corrupted buffer
*/
#include <errno.h>
#include <stdlib.h>

int main(void) {
  long own[4] = {0};
  void* volatile p = own;
  return realloc(p, 100) == NULL && errno == EINVAL ? 0 : 1;
}
