// SPDX-License-Identifier: MIT OR Apache-2.0
/* object: umem_malloc
   UMEM_DEBUG: firewall=3000,guards,verbose
   ends: 0
   says:
*/
/* Too little memory for a whole zone in one mapping: as where the kernel has no guards within one (before Linux 6.13). */
#define LIMIT (512 << 20)
#include "firewall.c"
