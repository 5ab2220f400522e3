// SPDX-License-Identifier: MIT OR Apache-2.0
// The logs as a debugger reads them: src/umem/log.h in C, and nothing of the library but its exported names.
#include <stdint.h>
#include <string.h>

struct event {
  const void* object;
  const void* cache;
  uint64_t nanoseconds;
  uint32_t thread;
  uint16_t ahead;
  uint8_t depth;
  uint8_t what;
  const struct entry* last_log;
  const struct entry* contents;
};
enum { ALLOCATED = 1, FREED, FAILED, SLAB_MADE, HELD };

struct entry {
  uint64_t number;
  uint32_t bytes, saved;
  uint64_t size;
  struct event event;
  const void* behind[];
};
struct chunk {
  uint64_t number;
  uint32_t used, writer;
};
struct log {
  uint64_t magic;
  char name[16];
  uint32_t writer_count, chunk_count;
  uint64_t chunk_bytes;
  char* chunks;
};
extern const struct log *umem_transaction_log, *umem_content_log, *umem_failure_log, *umem_slab_log;

/* The entries, in no order: those before `n` are in `into`. */
static int read_log(const struct log* log, const struct entry** into, int most) {
  int n = 0;
  for (uint32_t i = 0; i < log->chunk_count; i++) {
    const char* begin = log->chunks + i * log->chunk_bytes;
    const struct chunk* chunk = (const struct chunk*)begin;
    if (chunk->number == 0) continue;
    for (uint32_t at = sizeof *chunk; at < chunk->used && n < most;) {
      const struct entry* e = (const struct entry*)(begin + at);
      if (e->number != (chunk->number << 32 | at) || e->bytes < sizeof *e) return -1;
      into[n++] = e;
      at += e->bytes;
    }
  }
  return n;
}

/* The record of an object of `size` bytes in a cache with tags. */
static inline const struct event* record_of(const void* object, unsigned long size) {
  return *(const struct event**)((const char*)object + size + 8);
}
