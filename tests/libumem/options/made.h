// SPDX-License-Identifier: MIT OR Apache-2.0
// A cache whose constructor and destructor count, so that a program sees what the library keeps for it.
#define _GNU_SOURCE
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <umem.h>

enum { object_bytes = 1024, objects = 10000 };

static long made, undone;
static void* all[objects];

static int make(void* object, void* private_data, int flags) {
  ++made;
  return 0;
}
static void undo(void* object, void* private_data) { ++undone; }

static umem_cache_t* create(void) { return umem_cache_create("counted", object_bytes, 0, make, undo, NULL, NULL, NULL, 0); }
static void use_and_free(umem_cache_t* cache) {
  for (int i = 0; i < objects; ++i) all[i] = umem_cache_alloc(cache, UMEM_NOFAIL);
  for (int i = 0; i < objects; ++i) umem_cache_free(cache, all[i]);
}
/* Objects that are constructed and free. */
static long kept(void) { return made - undone; }

/* Each cpu has a slot. */
static void stay_on_one_cpu(void) {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(sched_getcpu(), &one);
  sched_setaffinity(0, sizeof one, &one);
}

static void sleep_ms(long ms) {
  const struct timespec t = {ms / 1000, ms % 1000 * 1000000};
  nanosleep(&t, NULL);
}
