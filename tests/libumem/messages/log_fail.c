// SPDX-License-Identifier: MIT OR Apache-2.0
/* UMEM_LOGGING: fail=16k
   UMEM_DEBUG: verbose
   on glibc
   ends: 0
   says:
*/
#include "log.h"

#include <umem.h>

static int refuse(void* p, void* q, int flags) {
  (void)p, (void)q, (void)flags;
  return 1;
}

int main(void) {
  umem_cache_t* cache = umem_cache_create("things", 40, 0, refuse, 0, 0, 0, 0, 0);
  if (umem_alloc(1UL << 60, UMEM_DEFAULT) != 0 || umem_alloc_align(1UL << 61, 64, UMEM_DEFAULT) != 0) return 1;
  if (umem_cache_alloc(cache, UMEM_DEFAULT) != 0) return 2;
  const struct entry* all[10];
  if (read_log(umem_failure_log, all, 10) != 3) return 3;
  int met = 0;
  for (int i = 0; i < 3; i++) {
    if (all[i]->event.what != FAILED || all[i]->event.depth == 0 || all[i]->event.object != 0) return 4;
    met |= all[i]->size == 1UL << 60   ? 1
           : all[i]->size == 1UL << 61 ? 2
           : all[i]->size == 40        ? (all[i]->event.cache == cache ? 4 : 8)
                                       : 8;
  }
  return met == 7 ? 0 : 5;
}
