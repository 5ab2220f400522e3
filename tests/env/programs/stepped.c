/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* For a debugger: calls of malloc and free after the first one. */
#include <stdio.h>
#include <stdlib.h>

void stepped(void) {
  void* volatile p = malloc(100);
  free(p);
}

int main(void) {
  stepped();
  stepped();
  puts("ok");
  return 0;
}
