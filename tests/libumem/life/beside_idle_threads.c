// SPDX-License-Identifier: MIT OR Apache-2.0
/* Threads that have freed all their objects and do something else: what their cores keep is no object in use.
   object: umem
   on every rung
   ends: 0
   says:
*/
#include "life.h"

enum { threads = 4 };

static struct counted constructed;
static umem_cache_t* plain;
static sem_t finished, ends;

static void* work(void* ignored) {
  void* all[100];
  for (int turn = 0; turn < 2; ++turn) {
    umem_cache_t* const cache = turn == 0 ? constructed.cache : plain;
    for (int i = 0; i < 100; ++i) all[i] = umem_cache_alloc(cache, UMEM_NOFAIL);
    for (int i = 0; i < 100; ++i) umem_cache_free(cache, all[i]);
  }
  sem_post(&finished);
  sem_wait(&ends);
  return NULL;
}

int main(void) {
  pthread_t thread[threads];
  sem_init(&finished, 0, 0);
  sem_init(&ends, 0, 0);
  for (int turn = 0; turn < 20; ++turn) {
    constructed.made = constructed.undone = 0;
    constructed.cache = umem_cache_create("constructed", object_bytes, 0, make, undo, NULL, &constructed, NULL, 0);
    plain = umem_cache_create("plain", object_bytes, 0, NULL, NULL, NULL, NULL, NULL, 0);
    for (int i = 0; i < threads; ++i) pthread_create(&thread[i], NULL, work, NULL);
    for (int i = 0; i < threads; ++i) sem_wait(&finished);
    if (turn % 2 != 0) {  // some are on their way out
      for (int i = 0; i < threads; ++i) sem_post(&ends);
    }
    umem_cache_destroy(constructed.cache);
    umem_cache_destroy(plain);
    expect(constructed.made == constructed.undone, "all objects are destructed when their cache is");
    if (turn % 2 == 0) {
      for (int i = 0; i < threads; ++i) sem_post(&ends);
    }
    for (int i = 0; i < threads; ++i) pthread_join(thread[i], NULL);
    expect(constructed.made == constructed.undone, "none is destructed twice");
  }
  return 0;
}
