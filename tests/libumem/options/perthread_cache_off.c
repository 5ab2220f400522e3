// SPDX-License-Identifier: MIT OR Apache-2.0
/* UMEM_OPTIONS: perthread_cache=0
   ends: 0
   says:
*/
#include "made.h"

int main(void) {
  stay_on_one_cpu();
  use_and_free(create());
  if (kept() <= 8) return 0;
  fprintf(stderr, "%ld objects kept\n", kept());
  return 1;
}
