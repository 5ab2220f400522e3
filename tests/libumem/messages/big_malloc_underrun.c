// SPDX-License-Identifier: MIT OR Apache-2.0
/* object: umem_malloc
   UMEM_DEBUG: default,verbose
   ends: SIGABRT
   says:
   free(%p): invalid or corrupted buffer
   umem: heap corruption detected
   stack trace:
   ...
*/
#include <stdlib.h>

#define SIZE 300000

int main(void) {
  volatile char* p = malloc(SIZE);
  p[-1] = 1;
  free((void*)p);
  return 0;
}
