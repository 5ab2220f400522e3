// SPDX-License-Identifier: MIT OR Apache-2.0
#include <sys/vmem.h>
#include <umem.h>

static char arena_memory[1 << 20] __attribute__((aligned(4096)));

/* A cache of objects of 100 bytes that are pieces of an arena. */
static umem_cache_t* cache_of_arena(char* name, int flags) {
  static vmem_t* arena;
  if (arena == 0) arena = vmem_create("memory", arena_memory, sizeof arena_memory, 64, 0, 0, 0, 0, VM_NOSLEEP);
  return umem_cache_create(name, 100, 0, 0, 0, 0, 0, arena, flags);
}
