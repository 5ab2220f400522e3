/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Beside the malloc of libc. C11 and C++. */
#include <malloc.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <terrace/cs.h>

struct counter {
  int64_t value;
  char line[56];
};
static struct counter* counters;
enum { rounds = 100000, threads = 4 };

static void* count(void* unused) {
  int i, slot;
  (void)unused;
  for (i = 0; i < rounds; ++i) {
    do {
      slot = terrace_cs_begin();
    } while (slot < 0 || terrace_cs_store64(&counters[slot].value, counters[slot].value + 1) != TERRACE_CS_OK);
    terrace_cs_end();
  }
  return NULL;
}

int main(void) {
  pthread_t t[threads];
  void* p = malloc(100);
  int64_t sum = 0;
  unsigned i;
  if (malloc_usable_size(p) == 112) return 1; /* Terrace's class */
  free(p);
  counters = (struct counter*)calloc(terrace_cs_slots(), sizeof *counters);
  for (i = 0; i < threads; ++i) pthread_create(&t[i], NULL, count, NULL);
  for (i = 0; i < threads; ++i) pthread_join(t[i], NULL);
  for (i = 0; i < terrace_cs_slots(); ++i) sum += counters[i].value;
  if (sum != (int64_t)rounds * threads) return 2;
  free(counters);
  puts("nothing is lost");
  return 0;
}
