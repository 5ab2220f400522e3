// SPDX-License-Identifier: MIT OR Apache-2.0
/* UMEM_DEBUG: audit,verbose
   UMEM_LOGGING: transaction
   setuid: yes
   ends: SIGABRT
   says:
*/
#include <umem.h>

/* Nothing of the environment is believed, and of what the program wants neither text nor failures. */
const char* _umem_debug_init(void) { return "guards,allverbose,mtbf=1,unknown"; }
extern void *umem_transaction_log;

int main(void) {
  for (int i = 0; i < 100; i++) {
    if (umem_alloc(32, UMEM_DEFAULT) == 0) return 1;
  }
  if (umem_transaction_log != 0) return 2;
  void* p = umem_alloc(32, UMEM_DEFAULT);
  umem_free(p, 32);
  umem_free(p, 32);
  return 3;
}
