// SPDX-License-Identifier: MIT OR Apache-2.0
/* UMEM_DEBUG: guards
   ends: 0
   says:
*/
#include <string.h>
#include <umem.h>

static int made, undone;
static int make(void* p, void* q, int flags) {
  (void)q, (void)flags;
  made++;
  return *(unsigned long*)p == 0xbaddcafebaddcafe ? 0 : 1;
}
static void undo(void* p, void* q) {
  (void)p, (void)q;
  undone++;
}

/* With patterns in it a free object is not constructed: it is made at each allocation, and undone at each free. */
int main(void) {
  umem_cache_t* cache = umem_cache_create("things", 64, 0, make, undo, 0, 0, 0, 0);
  for (int i = 1; i <= 10; i++) {
    unsigned long* p = umem_cache_alloc(cache, UMEM_DEFAULT);
    if (p == 0 || made != i) return 1;
    umem_cache_free(cache, p);
    if (undone != i || p[3] != 0xdeadbeefdeadbeef) return 2;
  }
  umem_cache_destroy(cache);
  return undone == 10 ? 0 : 3;
}
