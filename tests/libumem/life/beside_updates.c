// SPDX-License-Identifier: MIT OR Apache-2.0
/* Threads create caches, use them, free all and destroy them, while updates and malloc's own maintenance move objects about.
   object: umem
   UMEM_OPTIONS: reap_interval=0
   on every rung
   ends: 0
   says:
*/
#include "life.h"

enum { threads = 4, seconds = 3 };

static atomic_int stop;

static void* create_and_destroy(void* has_destructor) {
  static __thread void* all[400];
  struct counted* const c = calloc(1, sizeof *c);
  while (!stop) {
    c->cache = umem_cache_create("short", 200, 0, has_destructor ? make : NULL, has_destructor ? undo : NULL, NULL, c, NULL, 0);
    for (int i = 0; i < 400; ++i) all[i] = umem_cache_alloc(c->cache, UMEM_NOFAIL);
    for (int i = 0; i < 400; ++i) umem_cache_free(c->cache, all[i]);
    umem_cache_destroy(c->cache);
    expect(c->made == c->undone, "all objects are destructed when their cache is");
  }
  return NULL;
}

static void* reap(void* ignored) {
  while (!stop) umem_reap();
  return NULL;
}

int main(void) {
  pthread_t thread[threads], reaper;
  for (long i = 0; i < threads; ++i) pthread_create(&thread[i], NULL, create_and_destroy, (void*)(i % 2));
  pthread_create(&reaper, NULL, reap, NULL);
  nanosleep(&(struct timespec){seconds, 0}, NULL);
  stop = 1;
  for (int i = 0; i < threads; ++i) pthread_join(thread[i], NULL);
  pthread_join(reaper, NULL);
  return 0;
}
