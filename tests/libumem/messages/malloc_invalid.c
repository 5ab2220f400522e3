// SPDX-License-Identifier: MIT OR Apache-2.0
/* object: umem_malloc
   UMEM_DEBUG: guards,verbose
   ends: SIGABRT
   says:
   free(%p): invalid or corrupted buffer
   umem: heap corruption detected
   stack trace:
   ...
*/
#include <stdlib.h>

int main(void) {
  volatile char* p = malloc(100);
  p[-3] = 1;
  free((void*)p);
  return 0;
}
