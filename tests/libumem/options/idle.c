// SPDX-License-Identifier: MIT OR Apache-2.0
/* What nobody wants for two updates goes back, while the program goes on with something else.
   object: umem
   UMEM_OPTIONS: reap_interval=1
   ends: 0
   says:
*/
#include "made.h"

int main(void) {
  use_and_free(create());
  if (kept() < 100) return 2;
  for (int i = 0; i < 300 && kept() != 0; ++i) {
    for (int n = 0; n < objects; ++n) all[n] = umem_alloc(64, UMEM_NOFAIL);
    for (int n = 0; n < objects; ++n) umem_free(all[n], 64);
    sleep_ms(100);
  }
  if (kept() == 0) return 0;
  fprintf(stderr, "%ld objects kept\n", kept());
  return 1;
}
