// SPDX-License-Identifier: MIT OR Apache-2.0
/* UMEM_LOGGING: slab
   UMEM_DEBUG: verbose
   UMEM_DEBUG: guards,verbose
   on glibc
   ends: 0
   says:
*/
#include "log.h"

#include <umem.h>

/* Each object lies in a slab that the log has, once; as each debugged one does. */
int main(void) {
  enum { COUNT = 1000, SIZE = 3000 };
  umem_cache_t* cache = umem_cache_create("things", SIZE, 0, 0, 0, 0, 0, 0, 0);
  const char* objects[COUNT];
  for (int i = 0; i < COUNT; i++) objects[i] = umem_cache_alloc(cache, UMEM_DEFAULT);
  static const struct entry* all[COUNT];
  int entries = read_log(umem_slab_log, all, COUNT);
  if (entries <= 1 || entries == COUNT) return 1;
  for (int i = 0; i < COUNT; i++) {
    int slabs = 0;
    for (int k = 0; k < entries; k++) {
      const char* begin = all[k]->event.object;
      if (all[k]->event.what != SLAB_MADE || all[k]->event.depth == 0) return 2;
      if (all[k]->event.cache == cache && objects[i] >= begin && objects[i] + SIZE <= begin + all[k]->size) slabs++;
    }
    if (slabs != 1) return 3;
  }
  return 0;
}
