// SPDX-License-Identifier: MIT OR Apache-2.0
/* object: umem_malloc
   UMEM_DEBUG: audit,contents=24,verbose
   UMEM_LOGGING: contents
   ends: 0
   says:
*/
#include "log.h"

#include <stdlib.h>

/* Of malloc's blocks: a tag of 16 bytes, and the first of theirs. Patterns are off, the log is not. */
int main(void) {
  char* p = malloc(100);
  for (int i = 0; i < 100; i++) ((volatile char*)p)[i] = 'x';
  free(p);
  const struct entry* all[1000];
  for (int i = read_log(umem_content_log, all, 1000); i > 0; i--) {
    const struct entry* e = all[i - 1];
    if (e->event.object != p - 16) continue;
    return e->saved == 24 && memcmp((const char*)e->behind + 16, "xxxxxxxx", 8) == 0 ? 0 : 2;
  }
  return 1;
}
