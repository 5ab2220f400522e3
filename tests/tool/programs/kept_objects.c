// SPDX-License-Identifier: MIT OR Apache-2.0
// Holds known bytes of object caches and of umem_alloc(), a function for each: what a profile of libumem's memory says.
#include <stdio.h>
#include <umem.h>

#define MIB (1024L * 1024)

static umem_cache_t* cache;

__attribute__((noinline)) static void keep_objects(void) {
  for (long done = 0; done < 16 * MIB; done += 200) umem_cache_alloc(cache, UMEM_NOFAIL);
}
__attribute__((noinline)) static void reuse_objects(void) {
  for (long done = 0; done < 64 * MIB; done += 200) umem_cache_free(cache, umem_cache_alloc(cache, UMEM_NOFAIL));
}
__attribute__((noinline)) static void keep_sizes(void) {
  for (long done = 0; done < 8 * MIB; done += 100) umem_alloc(100, UMEM_NOFAIL);
}

int main(void) {
  char name[] = "kept";
  cache = umem_cache_create(name, 200, 0, NULL, NULL, NULL, NULL, NULL, 0);
  keep_objects();
  reuse_objects();
  keep_sizes();
  puts("ready");
  fflush(stdout);
  while (getchar() != EOF) {
  }
}
