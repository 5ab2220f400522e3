// SPDX-License-Identifier: MIT OR Apache-2.0
/* object: umem_malloc
   UMEM_DEBUG: firewall=1000,verbose
   ends: SIGSEGV
   says:
*/
#include <stdlib.h>

int main(void) {
  volatile char* p = malloc(1008);
  p[1008] = 1;
  return 0;
}
