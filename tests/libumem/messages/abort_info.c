// SPDX-License-Identifier: MIT OR Apache-2.0
/* UMEM_DEBUG: audit
   ends: SIGABRT
   says:
   handled
*/
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <umem.h>
#include <unistd.h>

extern struct {
  int error;
  const void *buffer, *real_buffer;
  const umem_cache_t *cache, *real_cache;
  const void *slab, *bufctl;
  uint64_t timestamp;
} umem_abort_info;

static umem_cache_t *things, *others;
static void* object;

/* A program's abort() is not called. Its handler is, once; then the process ends all the same. */
void abort(void) { _exit(1); }

static void handle(int number) {
  (void)number;
  if (umem_abort_info.error != 7 || umem_abort_info.buffer != object || umem_abort_info.cache != others) _exit(2);
  if (umem_abort_info.real_cache != things || umem_abort_info.slab == 0 || umem_abort_info.timestamp == 0) _exit(3);
  write(2, "handled\n", 8);
}

int main(void) {
  if (umem_abort_info.error != 0) return 4;
  signal(SIGABRT, handle);
  things = umem_cache_create("things", 24, 0, 0, 0, 0, 0, 0, 0);
  others = umem_cache_create("others", 24, 0, 0, 0, 0, 0, 0, 0);
  object = umem_cache_alloc(things, UMEM_DEFAULT);
  umem_cache_free(others, object);
  return 5;
}
