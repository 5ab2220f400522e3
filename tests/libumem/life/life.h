// SPDX-License-Identifier: MIT OR Apache-2.0
// Caches that end while others are at work.
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <umem.h>

enum { object_bytes = 1024, objects = 5000 };

struct counted {
  umem_cache_t* cache;
  atomic_long made, undone;
  void* all[objects];
};

static int make(void* object, void* counted, int flags) {
  ++((struct counted*)counted)->made;
  return 0;
}
static void undo(void* object, void* counted) { ++((struct counted*)counted)->undone; }

static void use_and_free(struct counted* c, int n) {
  for (int i = 0; i < n; ++i) c->all[i] = umem_cache_alloc(c->cache, UMEM_NOFAIL);
  for (int i = 0; i < n; ++i) umem_cache_free(c->cache, c->all[i]);
}
static void expect(int condition, const char* what) {
  if (condition) return;
  fprintf(stderr, "not so: %s\n", what);
  exit(1);
}
/* Each cpu has a slot. */
static void stay_on_one_cpu(void) {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(sched_getcpu(), &one);
  sched_setaffinity(0, sizeof one, &one);
}
static void* wait_for(void* semaphore) {
  sem_wait(semaphore);
  return NULL;
}
/* Updates have a thread of their own in a process of several. */
static void become_several(void) {
  static sem_t never;
  pthread_t thread;
  sem_init(&never, 0, 0);
  pthread_create(&thread, NULL, wait_for, &never);
}
/* An update that is under way already may be the only one for now. */
static void reap_until(sem_t* entered) {
  while (sem_trywait(entered) != 0) {
    umem_reap();
    nanosleep(&(struct timespec){0, 10000000}, NULL);
  }
}
