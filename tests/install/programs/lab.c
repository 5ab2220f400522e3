/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A space of 64 KiB, handed out once. C11 and C++. */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <terrace/lab_emit.h>

enum { alignment = 16, young = 65536 };
#ifdef __cplusplus
alignas(128)
#else
_Alignas(128)
#endif
    static char memory[1 << 22]; /* of the engine: a buffer per possible cpu */
static char space[young + alignment];
static char* top;
static char* end;
static size_t filled;

static void* source(void* self, unsigned node, size_t min, size_t desired, size_t* actual) {
  const size_t room = (size_t)(end - top);
  char* const start = top;
  (void)self;
  (void)node;
  if (room < min) return NULL;
  *actual = desired < room ? desired : room;
  top += *actual;
  return start;
}
static void fill(void* self, void* from, void* to) {
  (void)self;
  filled += (size_t)((char*)to - (char*)from);
}

int main(void) {
  struct terrace_lab_config config;
  struct terrace_lab_heap* heap;
  struct terrace_lab_thread thread;
  struct terrace_lab_counters counters;
  size_t objects = 0;
  const void* p;
  memset(&config, 0, sizeof config);
  config.abi = TERRACE_LAB_ABI;
  config.alignment = alignment;
  config.young_bytes = young;
  config.source = source;
  config.fill = fill;
  config.levels[TERRACE_LAB_THREAD].size = 1024;
  config.levels[TERRACE_LAB_CORE].size = 8192;
  config.levels[TERRACE_LAB_CORE].sync = TERRACE_LAB_RESTARTABLE;
  if (terrace_lab_heap_bytes(&config) == 0 || terrace_lab_heap_bytes(&config) > sizeof memory) return 1;
  top = space + (alignment - (uintptr_t)space % alignment) % alignment;
  end = top + young;
  heap = terrace_lab_init(memory, &config);
  if (heap == NULL) return 2;
  terrace_lab_attach(heap, &thread);
  while ((p = terrace_lab_allocate(&thread, 48)) != NULL) {
    if ((uintptr_t)p % alignment != 0) return 3;
    ++objects;
  }
  if (terrace_lab_retire_all(heap) != 0) return 6;
  if (objects * 48 + filled != young) return 4;
  terrace_lab_collected(heap, 0);
  terrace_lab_read_counters(heap, &counters);
  if (counters.collections != 1 || counters.level[TERRACE_LAB_CORE].labs == 0) return 5;
  terrace_lab_detach(&thread);
  puts("every byte is an object or filled");
  return 0;
}
