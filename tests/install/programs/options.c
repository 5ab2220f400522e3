/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Options compiled in. argv: what the JSON of the statistics has to contain. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <terrace/options.h>

const char* terrace_options = OPTIONS;

size_t terrace_stats_json(char* buffer, size_t size) __attribute__((weak));

int main(int count, char** words) {
  static char text[1 << 20];
  void* volatile p = malloc(100);
  free(p);
  if (terrace_stats_json == NULL) return 2;
  terrace_stats_json(text, sizeof text);
  for (int i = 1; i < count; ++i) {
    if (strstr(text, words[i]) == NULL) {
      fprintf(stderr, "no %s in %.400s\n", words[i], text);
      return 1;
    }
  }
  return 0;
}
