// SPDX-License-Identifier: MIT OR Apache-2.0
/* object: umem_malloc
   UMEM_DEBUG: checknull,verbose
   ends: SIGABRT
   says:
   umem: out of heap space
   stack trace:
   ...
*/
#include <stdlib.h>

int main(void) { return malloc(~0UL / 2) != NULL; }
