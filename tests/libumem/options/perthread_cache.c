// SPDX-License-Identifier: MIT OR Apache-2.0
/* The slot keeps as much as it may, and no more; what depots keep beside is less than that again.
   object: umem
   UMEM_OPTIONS: perthread_cache=64k
   ends: 0
   says:
*/
#include "made.h"

int main(void) {
  stay_on_one_cpu();
  use_and_free(create());
  if (kept() >= 16 && kept() * object_bytes <= 128 * 1024) return 0;
  fprintf(stderr, "%ld objects kept\n", kept());
  return 1;
}
