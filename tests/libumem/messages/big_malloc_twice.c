// SPDX-License-Identifier: MIT OR Apache-2.0
/* object: umem_malloc
   UMEM_DEBUG: default,verbose
   UMEM_DEBUG: guards,verbose
   ends: SIGABRT
   says:
   free(%p): double-free or invalid buffer
   umem: heap corruption detected
   stack trace:
   ...
*/
#include <stdlib.h>

#define SIZE 300000

int main(void) {
  void* volatile p = malloc(SIZE);
  free(p);
  free(p);
  return 0;
}
