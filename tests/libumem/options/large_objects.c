// SPDX-License-Identifier: MIT OR Apache-2.0
/* UMEM_DEBUG: verbose
   UMEM_DEBUG: default,verbose
   ends: 0
   says:
*/
#include <umem.h>

static int made, undone;

static int construct(void* p, void* unused, int flags) {
  *(long*)p = 42;
  made++;
  return 0;
}
static void destruct(void* p, void* unused) { undone++; }

/* Beyond all classes of blocks: an object stays, constructed, or under UMEM_DEBUG with its tag, for the next who asks. */
int main(void) {
  enum { SIZE = 270000, ROUNDS = 100 };
  umem_cache_t* cache = umem_cache_create("large", SIZE, 0, construct, destruct, 0, 0, 0, 0);
  const void* last = 0;
  int same = 0;
  for (int i = 0; i < ROUNDS; i++) {
    long* p = umem_cache_alloc(cache, UMEM_DEFAULT);
    if (p == 0 || *p != 42) return 1;
    same += p == last;
    last = p;
    umem_cache_free(cache, p);
  }
  if (same < ROUNDS / 2) return 2;
  int debugged = made == ROUNDS; /* constructor and destructor are called each time then */
  if (!debugged && made > ROUNDS / 2) return 3;
  umem_cache_destroy(cache);
  return made == undone ? 0 : 4;
}
