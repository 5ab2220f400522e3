/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A library with the engine inside, to be unloaded: one object from the core's buffer, by a critical section. */
#include "terrace/lab.h"

#include <stddef.h>

static char space[1 << 20] __attribute__((aligned(4096)));
static char memory[1 << 23] __attribute__((aligned(4096)));
static size_t used;
static struct terrace_lab_heap* heap;

static void* source(void* self, unsigned node, size_t min, size_t desired, size_t* actual) {
  const size_t start = __atomic_fetch_add(&used, desired, __ATOMIC_RELAXED);
  (void)self;
  (void)node;
  (void)min;
  *actual = desired;
  return start + desired <= sizeof space ? space + start : NULL;
}

int plugin_start(void) {
  struct terrace_lab_config config = {.abi = TERRACE_LAB_ABI};
  config.levels[TERRACE_LAB_CORE].size = 4096;
  config.levels[TERRACE_LAB_CORE].sync = TERRACE_LAB_RESTARTABLE;
  config.association = TERRACE_LAB_BY_CORE;
  config.alignment = 16;
  config.source = source;
  if (terrace_lab_heap_bytes(&config) == 0 || terrace_lab_heap_bytes(&config) > sizeof memory) return 0;
  heap = terrace_lab_init(memory, &config);
  return heap != NULL;
}

/* The caller's last section is the engine's afterwards. */
int plugin_allocate(struct terrace_lab_thread* thread) {
  void* object = NULL;
  terrace_lab_attach(heap, thread);
  for (int i = 0; i < 3; ++i) object = terrace_lab_allocate_core(thread, 16);
  return object != NULL;
}

void plugin_detach(struct terrace_lab_thread* thread) { terrace_lab_detach(thread); }
void plugin_forget(void) { terrace_lab_forget_sections(); }
