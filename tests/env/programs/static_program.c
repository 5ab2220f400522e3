/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Linked statically: nothing can be preloaded, and nothing must happen. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(void) {
  for (size_t size = 1; size < 1000000; size *= 3) {
    char* volatile p = malloc(size);
    if (p == NULL) return 1;
    memset(p, 1, size);
    free(p);
  }
  puts("ok");
  return 0;
}
