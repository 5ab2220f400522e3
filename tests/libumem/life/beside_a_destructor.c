// SPDX-License-Identifier: MIT OR Apache-2.0
/* An update has taken objects of two caches, and is in a destructor of one of them: the other cache is destroyed meanwhile,
   with a lock held that the destructor waits for; then the first one, which waits for the destructor. object: umem
   UMEM_OPTIONS: reap_interval=0
   on every rung
   ends: 0
   says:
*/
#include "life.h"

static struct counted slow, other;
static sem_t entered, done;
static atomic_int waits = 1;
static pthread_t program;

static void undo_slowly(void* object, void* counted) {
  if (!pthread_equal(pthread_self(), program) && atomic_exchange(&waits, 0)) {
    sem_post(&entered);
    sem_wait(&done);
  }
  undo(object, counted);
}

static void* destroy(void* cache) {
  umem_cache_destroy(cache);
  return NULL;
}

int main(void) {
  program = pthread_self();
  sem_init(&entered, 0, 0);
  sem_init(&done, 0, 0);
  stay_on_one_cpu();
  become_several();
  slow.cache = umem_cache_create("slow", object_bytes, 0, make, undo_slowly, NULL, &slow, NULL, 0);
  other.cache = umem_cache_create("other", object_bytes, 0, make, undo, NULL, &other, NULL, 0);
  // Few stay with the core. An update does not look at what other threads keep, where each keeps its own.
  const int n = strcmp(getenv("TERRACE_RUNG"), "thread") == 0 ? objects : 30;
  use_and_free(&slow, n);
  use_and_free(&other, n);
  reap_until(&entered);
  umem_cache_destroy(other.cache);
  expect(other.made == other.undone, "all objects are destructed when their cache is");
  pthread_t thread;
  pthread_create(&thread, NULL, destroy, slow.cache);
  nanosleep(&(struct timespec){0, 100000000}, NULL);
  expect(slow.made > slow.undone, "the destructor waits");
  sem_post(&done);
  pthread_join(thread, NULL);
  expect(slow.made == slow.undone, "all objects are destructed when their cache is");
  return 0;
}
