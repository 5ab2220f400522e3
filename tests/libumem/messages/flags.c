// SPDX-License-Identifier: MIT OR Apache-2.0
/* UMEM_DEBUG: default,firewall=3000,verbose
   UMEM_LOGGING: transaction,contents
   ends: 0
   says:
*/
#include "faults.h"
#include "log.h"

#include <umem.h>

static int logged(const struct log* log, const void* object) {
  static const struct entry* all[1000];
  int met = 0;
  for (int i = read_log(log, all, 1000); i > 0; i--) met += all[i - 1]->event.object == object;
  return met;
}

/* What a cache has for flags is left out: all, what touches objects, what keeps records of them. */
static int is_as_said(int flags, int patterns, int events, int contents) {
  umem_cache_t* cache = umem_cache_create("things", 120, 0, 0, 0, 0, 0, 0, flags);
  volatile unsigned long* p = umem_cache_alloc(cache, UMEM_DEFAULT);
  p[2] = 5;
  umem_cache_free(cache, (void*)p);
  int filled = p[2] == 0xdeadbeefdeadbeef;
  return filled == patterns && logged(umem_transaction_log, (void*)p) == events &&
         logged(umem_content_log, (void*)p) == contents;
}

int main(void) {
  if (!is_as_said(0, 1, 2, 1)) return 1;
  if (!is_as_said(UMC_NODEBUG, 0, 0, 0)) return 2;
  if (!is_as_said(UMC_NOTOUCH, 0, 2, 0)) return 3;
  if (!is_as_said(UMC_NOHASH, 1, 0, 0)) return 4;
  umem_cache_t* cache = umem_cache_create("large", 3200, 0, 0, 0, 0, 0, 0, UMC_NOHASH);
  char* p = umem_cache_alloc(cache, UMEM_DEFAULT);
  return faults_at(p + 3200) ? 5 : 0;
}
