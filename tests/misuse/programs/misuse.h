/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Shared by the programs: each does one thing wrong. The compiler must not see what. */
#ifndef MISUSE_H
#define MISUSE_H

#include <malloc.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static inline void* opaque(void* p) {
  __asm__ volatile("" : "+r"(p) : : "memory");
  return p;
}

/* The pointer that the report should name. Written at once: the process is about to die. */
static inline void* announce(void* p) {
  char line[64];
  const int n = snprintf(line, sizeof line, "misused %p\n", opaque(p));
  if (write(STDOUT_FILENO, line, (size_t)n) != n) _exit(3);
  return opaque(p);
}

/* The one argument of most programs. */
static inline size_t size_argument(int argc, char** argv, size_t otherwise) {
  return argc > 1 ? strtoull(argv[1], NULL, 0) : otherwise;
}

static inline void* allocated(size_t size) {
  void* p = opaque(malloc(size));
  if (p == NULL) _exit(4);
  return p;
}

/* All that waits in caches reaches the global level, where every block is looked at. */
static inline void push_everything_down(void) { malloc_trim(0); }

/* Reached only when nobody noticed. */
static inline int unnoticed(void) { return 0; }

#endif
