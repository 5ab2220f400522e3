// SPDX-License-Identifier: MIT OR Apache-2.0
// 2,000 blocks, of which a thread replaces the oldest again and again, for tests of `terrace profile`. Prints "ready" when all
// are there, and ends with its standard input.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { blocks = 2000 };
static void* ring[blocks];

__attribute__((noinline)) static void replace(void** block) {
  free(*block);
  *block = malloc(1000);
}
static void* replace_all(void* unused) {
  for (size_t i = 0;; i = (i + 1) % blocks) replace(&ring[i]);
  return unused;
}

int main(void) {
  for (size_t i = 0; i < blocks; ++i) replace(&ring[i]);
  pthread_t thread;
  pthread_create(&thread, NULL, replace_all, NULL);
  puts("ready");
  fflush(stdout);
  getchar();
  _Exit(0);
}
