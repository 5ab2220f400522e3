// SPDX-License-Identifier: MIT OR Apache-2.0
/* A cache is destroyed while its reclaim function is at work, which has still to free what the cache was keeping.
   object: umem
   UMEM_OPTIONS: reap_interval=0
   on every rung
   ends: 0
   says:
*/
#include "life.h"

static struct counted keeping;
static sem_t entered;

static void give_back(void* counted) {
  sem_post(&entered);
  nanosleep(&(struct timespec){0, 100000000}, NULL);
  for (int i = 0; i < 100; ++i) umem_cache_free(keeping.cache, keeping.all[i]);
}

int main(void) {
  sem_init(&entered, 0, 0);
  become_several();
  keeping.cache = umem_cache_create("keeping", object_bytes, 0, make, undo, give_back, &keeping, NULL, 0);
  for (int i = 0; i < 100; ++i) keeping.all[i] = umem_cache_alloc(keeping.cache, UMEM_NOFAIL);
  reap_until(&entered);
  umem_cache_destroy(keeping.cache);
  expect(keeping.made == keeping.undone, "all objects are destructed when their cache is");
  return 0;
}
