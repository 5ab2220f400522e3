// SPDX-License-Identifier: MIT OR Apache-2.0
/* Threads find no memory at the same time: one calls reclaim, the others wait for it and try again. Nobody is refused as
   long as reclaim has something to give.
   object: umem_malloc
   on every rung
   ends: 0
   says:
*/
#include "life.h"

#include <sys/resource.h>

enum { threads = 4, object = 4000, most = 100000, limit_mib = 300, turns = 3 };

static umem_cache_t* keeping;
static void* kept[most];
static int n, keeps_all;
static atomic_int inside, calls;
static pthread_barrier_t begin, end;

static void give_back(void* ignored) {
  expect(atomic_exchange(&inside, 1) == 0, "one thread at a time is in reclaim");
  ++calls;
  while (n > 0 && !keeps_all) umem_cache_free(keeping, kept[--n]);
  inside = 0;
}

static void* allocate(void* by_malloc) {
  for (int turn = 0; turn < turns; ++turn) {
    void* all[20];
    pthread_barrier_wait(&begin);
    for (int i = 0; i < 20; ++i)
      expect((all[i] = by_malloc ? malloc(1 << 20) : umem_alloc(1 << 20, UMEM_DEFAULT)) != NULL, "memory");
    for (int i = 0; i < 20; ++i) by_malloc ? free(all[i]) : umem_free(all[i], 1 << 20);
    pthread_barrier_wait(&end);
  }
  return NULL;
}

int main(void) {
  pthread_t thread[threads];
  pthread_barrier_init(&begin, NULL, threads + 1);
  pthread_barrier_init(&end, NULL, threads + 1);
  pthread_attr_t small;
  pthread_attr_init(&small);
  pthread_attr_setstacksize(&small, 128 << 10);
  keeping = umem_cache_create("keeping", object, 0, NULL, NULL, give_back, NULL, NULL, 0);
  for (long i = 0; i < threads; ++i) pthread_create(&thread[i], &small, allocate, (void*)(i % 2));
  setrlimit(RLIMIT_AS, &(struct rlimit){(rlim_t)limit_mib << 20, (rlim_t)limit_mib << 20});
  for (int turn = 0; turn < turns; ++turn) {
    keeps_all = 1;
    while (n < most && (kept[n] = umem_cache_alloc(keeping, UMEM_DEFAULT)) != NULL) ++n;
    keeps_all = calls = 0;
    pthread_barrier_wait(&begin);
    pthread_barrier_wait(&end);
    expect(calls > 0, "reclaim is called");
  }
  for (int i = 0; i < threads; ++i) pthread_join(thread[i], NULL);
  return 0;
}
