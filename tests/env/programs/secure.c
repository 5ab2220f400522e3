/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Linked with libterrace.so (not preloaded), so that it still has it when it is set-user-id. Prints whether it is, and the
 * rung. */
#include "terrace/stats.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/auxv.h>

int main(void) {
  free(malloc(100));
  printf("secure %lu\nrung %s\nok\n", getauxval(AT_SECURE), terrace_rung());
  return 0;
}
