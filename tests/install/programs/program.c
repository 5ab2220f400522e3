/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <terrace/cs.h>
#include <terrace/malloc.h>
#include <terrace/stats.h>
#include <terrace/version.h>

int main(void) {
  char* p = malloc(100);
  memset(p, 1, 100);
  /* The class of 112 bytes: glibc would say 104. */
  if (malloc_usable_size(p) != 112) return 1;
  free(p);
  if (terrace_cs_begin() < 0 || terrace_rung()[0] == '\0') return 2;
  p = terrace_malloc(10);
  free(p);
  char text[200000];
  if (terrace_stats_json(text, sizeof text) >= sizeof text || strstr(text, "\"allocations\":0,") == text) return 3;
  puts(terrace_version());
  return 0;
}
