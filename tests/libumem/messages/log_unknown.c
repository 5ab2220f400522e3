// SPDX-License-Identifier: MIT OR Apache-2.0
/* UMEM_LOGGING: transaction, slab=0 ,fail=lots,contents,all
   UMEM_DEBUG: guards,verbose
   ends: 0
   says:
   umem allocator: UMEM_LOGGING: 'fail=lots' wants a size
   umem allocator: UMEM_LOGGING: 'all' is not known
   umem allocator: UMEM_LOGGING: 'transaction' wants UMEM_DEBUG=audit
   umem allocator: UMEM_LOGGING: 'contents' wants UMEM_DEBUG=audit
*/
#include "log.h"

#include <umem.h>

int main(void) {
  umem_free(umem_alloc(10, UMEM_DEFAULT), 10);
  return umem_transaction_log != 0 || umem_slab_log != 0;
}
