/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Two threads allocate from terrace/lab.h; the collector finds everything dead, but walks the space as one would that finds
   something alive. docs/guide/lab.md explains it. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <terrace/lab.h>

enum { alignment = 16, threads = 2, objects_per_thread = 1000000 };
static const size_t young_bytes = 8 << 20;

/* What every object begins with, dead ones that fill a tail included; the rest is the program's. */
struct object {
  uint64_t bytes;
  uint64_t kind;
};
enum { live = 1, filler = 2 };

static struct terrace_lab_heap* heap;
static char* space;
static _Atomic size_t top; /* of the space: all below was handed out */

/* Threads that may touch the space. A safepoint is when only the collecting one is left. */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static atomic_bool stop;
static int running;
static uint64_t collections, live_bytes, filled_bytes;

/* What the engine asks for. */
static void* source(void* self, unsigned node, size_t min, size_t desired, size_t* actual) {
  size_t old = atomic_load(&top), n;
  (void)self;
  (void)node; /* one space for all */
  do {
    const size_t room = young_bytes - old;
    n = desired <= room ? desired : room; /* a multiple of the alignment, as young_bytes is */
    if (n < min) return NULL;
  } while (!atomic_compare_exchange_weak(&top, &old, old + n));
  *actual = n;
  return space + old;
}
static size_t available(void* self) {
  (void)self;
  return young_bytes - atomic_load(&top);
}
static void fill(void* self, void* start, void* end) {
  struct object* const dead = start; /* 16 bytes: fits into the shortest tail */
  (void)self;
  dead->bytes = (uint64_t)((char*)end - (char*)start);
  dead->kind = filler;
}

/* A collection that finds everything dead. It walks the space, as one that finds something alive would. */
static void collect_at_safepoint(void) {
  size_t at = 0;
  if (terrace_lab_retire_all(heap) != 0) abort(); /* no safepoint: a thread is inside the engine */
  while (at < top) {
    const struct object* const o = (const struct object*)(space + at);
    if (o->bytes == 0 || (o->kind != live && o->kind != filler)) abort();
    *(o->kind == live ? &live_bytes : &filled_bytes) += o->bytes;
    at += o->bytes;
  }
  top = 0;
  terrace_lab_collected(heap, 0);
  ++collections;
}

/* With the mutex held: lets others collect. */
static void wait_for_collection(void) {
  --running;
  pthread_cond_broadcast(&changed);
  while (stop) pthread_cond_wait(&changed, &mutex);
  ++running;
}
static void poll_safepoint(void) {
  if (!atomic_load_explicit(&stop, memory_order_relaxed)) return;
  pthread_mutex_lock(&mutex);
  if (stop) wait_for_collection();
  pthread_mutex_unlock(&mutex);
}
static void collect(void) {
  pthread_mutex_lock(&mutex);
  if (stop) {
    wait_for_collection(); /* somebody else is at it */
  } else {
    stop = true;
    while (running != 1) pthread_cond_wait(&changed, &mutex);
    collect_at_safepoint();
    stop = false;
    pthread_cond_broadcast(&changed);
  }
  pthread_mutex_unlock(&mutex);
}

/* What a compiler would emit in line: poll, bump, header. No safepoint lies between the bump and the header. */
static struct object* new_object(struct terrace_lab_thread* lab, size_t bytes) {
  struct object* o;
  poll_safepoint();
  while ((o = terrace_lab_allocate(lab, bytes)) == NULL) collect();
  o->bytes = bytes;
  o->kind = live;
  return o;
}

static void* work(void* argument) {
  struct terrace_lab_thread lab;
  uint64_t* const allocated = argument;
  pthread_mutex_lock(&mutex);
  while (stop) pthread_cond_wait(&changed, &mutex);
  ++running;
  pthread_mutex_unlock(&mutex);
  terrace_lab_attach(heap, &lab);
  for (unsigned i = 0; i < objects_per_thread; ++i) *allocated += new_object(&lab, 16 + i % 16 * 16)->bytes;
  terrace_lab_detach(&lab);
  pthread_mutex_lock(&mutex);
  --running;
  pthread_cond_broadcast(&changed);
  pthread_mutex_unlock(&mutex);
  return NULL;
}

static void* map(size_t bytes) {
  void* const p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (p == MAP_FAILED) abort();
  return p;
}

int main(void) {
  const struct terrace_lab_config config = {
      .abi = TERRACE_LAB_ABI,
      .levels = {[TERRACE_LAB_THREAD] = {.size = 8192, .max_size = 65536, .sizing = TERRACE_LAB_DOUBLING},
                 [TERRACE_LAB_CORE] = {.size = 131072, .sync = TERRACE_LAB_RESTARTABLE}},
      .association = TERRACE_LAB_BY_THREAD,
      .alignment = alignment,
      .young_bytes = young_bytes,
      .stop_permille = 20,
      .source = source,
      .available = available,
      .fill = fill,
  };
  const size_t bytes = terrace_lab_heap_bytes(&config);
  if (bytes == 0) return 1; /* not a configuration */
  space = map(young_bytes);
  heap = terrace_lab_init(map(bytes), &config);

  pthread_t thread[threads];
  uint64_t allocated[threads] = {0}, sum = 0;
  for (int t = 0; t < threads; ++t) pthread_create(&thread[t], NULL, work, &allocated[t]);
  for (int t = 0; t < threads; ++t) pthread_join(thread[t], NULL);
  for (int t = 0; t < threads; ++t) sum += allocated[t];
  collect_at_safepoint(); /* nobody else is left */

  struct terrace_lab_counters c;
  terrace_lab_read_counters(heap, &c);
  printf("%llu collections found %llu bytes in objects; the threads had allocated %llu\n", (unsigned long long)collections,
         (unsigned long long)live_bytes, (unsigned long long)sum);
  printf("TLABs %llu, CLABs %llu; filled %.2f %% of the space\n", (unsigned long long)c.level[TERRACE_LAB_THREAD].labs,
         (unsigned long long)c.level[TERRACE_LAB_CORE].labs, 100.0 * (double)filled_bytes / (double)(live_bytes + filled_bytes));
  return live_bytes == sum && filled_bytes == c.level[TERRACE_LAB_THREAD].wasted_bytes + c.level[TERRACE_LAB_CORE].wasted_bytes +
                                                  c.level[TERRACE_LAB_CORE].unused_sidelined_bytes
             ? 0
             : 1;
}
