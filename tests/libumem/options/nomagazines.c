// SPDX-License-Identifier: MIT OR Apache-2.0
/* UMEM_OPTIONS: nomagazines
   ends: 0
   says:
   10000 made, 0 kept
*/
#include "made.h"

int main(void) {
  use_and_free(create());
  fprintf(stderr, "%ld made, %ld kept\n", made, kept());
  return 0;
}
