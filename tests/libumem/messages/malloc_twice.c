// SPDX-License-Identifier: MIT OR Apache-2.0
/* object: umem_malloc
   UMEM_DEBUG: guards,verbose
   UMEM_DEBUG: firewall=64,verbose
   ends: SIGABRT
   says:
   free(%p): double-free or invalid buffer
   umem: heap corruption detected
   stack trace:
   ...
*/
#include <stdlib.h>

int main(void) {
  void* volatile p = malloc(100);
  free(p);
  free(p);
  return 0;
}
