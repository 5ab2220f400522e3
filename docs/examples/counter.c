/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A counter per slot, without locks or atomic instructions. docs/guide/critical-sections.md explains it. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <terrace/cs.h>

struct counter {
  _Alignas(64) int64_t value; /* a cache line per slot */
};
static struct counter* counters;

static void count_one(void) {
  int slot;
  int64_t n;
  do {
    slot = terrace_cs_begin();
    n = counters[slot].value + 1;
  } while (terrace_cs_store64(&counters[slot].value, n) != TERRACE_CS_OK);
  terrace_cs_end();
}

static void* work(void* unused) {
  (void)unused;
  for (int i = 0; i < 1000000; ++i) count_one();
  return NULL;
}

int main(void) {
  enum { threads = 8 };
  const unsigned slots = terrace_cs_slots();
  counters = aligned_alloc(64, slots * sizeof *counters);
  if (counters == NULL) return 1;
  for (unsigned s = 0; s < slots; ++s) counters[s].value = 0;

  pthread_t thread[threads];
  for (int t = 0; t < threads; ++t) pthread_create(&thread[t], NULL, work, NULL);
  for (int t = 0; t < threads; ++t) pthread_join(thread[t], NULL);

  int64_t sum = 0;
  for (unsigned s = 0; s < slots; ++s) {
    printf("slot %u: %lld\n", s, (long long)counters[s].value);
    sum += counters[s].value;
  }
  printf("sum: %lld\n", (long long)sum);
  free(counters);
  return sum == threads * 1000000LL ? 0 : 1;
}
