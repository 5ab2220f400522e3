/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* argv: what to do with a sampled block, size, "handled" to have a handler of the program's own. Every allocation is sampled.
 */
#include "misuse.h"

#include <signal.h>

static volatile char sink;

static void handler(int number) {
  (void)number;
  static const char line[] = "handled\n";
  _exit(write(STDOUT_FILENO, line, sizeof line - 1) == (ssize_t)sizeof line - 1 ? 33 : 34);
}

/* Blocks lie at the end and at the start of their pages; this one at the end if `last`. */
static char* sampled(size_t size, int last) {
  for (int i = 0; i < 100; ++i) {
    char* p = allocated(size);
    const size_t at = (size_t)p % 4096;
    if (last ? at + size > 4096 - 16 : at == 0) return p;
  }
  _exit(5);
}

__attribute__((noinline)) void free_it(void* p) { free(opaque(p)); }

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  const char* const what = argv[1];
  const size_t size = strtoull(argv[2], NULL, 0);
  if (argc > 3) signal(SIGSEGV, handler);
  char* p = announce(sampled(size, strcmp(what, "underflow") != 0 && strcmp(what, "slack_before") != 0));
  if (strcmp(what, "overflow") == 0) ((volatile char*)p)[(size + 15) / 16 * 16] = 1;
  if (strcmp(what, "overread") == 0) sink = ((volatile char*)p)[(size + 15) / 16 * 16 + 4];
  if (strcmp(what, "underflow") == 0) ((volatile char*)p)[-1] = 1;
  if (strcmp(what, "slack") == 0) p[size] = 1, free(p);
  if (strcmp(what, "slack_before") == 0) p[size] = 1, free(p);
  if (strcmp(what, "interior") == 0) free(p + 16);
  free_it(p);
  if (strcmp(what, "read_freed") == 0) sink = ((volatile char*)p)[size / 2];
  if (strcmp(what, "write_freed") == 0) ((volatile char*)p)[size / 2] = 1;
  if (strcmp(what, "double_free") == 0) free_it(p);
  if (strcmp(what, "realloc_freed") == 0) allocated((size_t)(realloc(opaque(p), 2 * size) != NULL));
  return unnoticed();
}
