// SPDX-License-Identifier: MIT OR Apache-2.0
/* object: umem_malloc
   UMEM_DEBUG: firewall=3000,guards,verbose
   ends: 0
   says:
*/
#include "faults.h"

#include <malloc.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <umem.h>

static int made;
static int make(void* p, void* q, int flags) {
  (void)p, (void)q, (void)flags;
  made++;
  return 0;
}
static void undo(void* p, void* q) {
  (void)p, (void)q;
  made--;
}

/* Whether [p, p + size) can be used, and the byte behind it can not. */
static int is_walled(volatile char* p, size_t size) {
  for (size_t i = 0; i < size; i++) p[i] = 1;
  return !faults_at(p) && !faults_at(p + size - 1) && faults_at(p + size);
}

/* Objects that are long enough end at a page that nobody may touch, wherever they come from; when they are freed they can not
   be touched either. Shorter ones are as ever. */
int main(void) {
#ifdef LIMIT
  setrlimit(RLIMIT_DATA, &(struct rlimit){LIMIT, LIMIT});
#endif
  static const size_t sizes[] = {3008, 4096, 8192 + 48, 100 * 1024, 128 * 1024 + 16, 5 << 20};
  for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    char* p = umem_alloc(sizes[i], UMEM_DEFAULT);
    if (!is_walled(p, sizes[i])) return 1;
    umem_free(p, sizes[i]);
    if (!faults_at(p)) return 2;
    p = malloc(sizes[i]);
    if ((uintptr_t)p % 16 != 0 || malloc_usable_size(p) != sizes[i] || !is_walled(p, sizes[i])) return 3;
    p = realloc(p, sizes[i] + 1600);
    if (p[sizes[i] - 1] != 1 || !is_walled(p, sizes[i] + 1600)) return 4;
    free(p);
    if (!faults_at(p)) return 5;
    p = aligned_alloc(256, sizes[i]);
    if ((uintptr_t)p % 256 != 0) return 6;
    free(p);
    if (!faults_at(p)) return 7;
    p = umem_alloc_align(sizes[i], 16384, UMEM_DEFAULT);
    if ((uintptr_t)p % 16384 != 0) return 8;
    umem_free_align(p, sizes[i]);
    if (!faults_at(p)) return 9;
  }
  volatile char* small = malloc(2990);
  if (faults_at(small + 3000)) return 10;
  umem_cache_t* cache = umem_cache_create("things", 4000, 0, make, undo, 0, 0, 0, 0);
  umem_cache_t* spared = umem_cache_create("spared", 4000, 0, make, undo, 0, 0, 0, UMC_NODEBUG);
  umem_cache_t* shorter = umem_cache_create("shorter", 2999, 0, make, undo, 0, 0, 0, 0);
  char* p = umem_cache_alloc(cache, UMEM_DEFAULT);
  char* q = umem_cache_alloc(spared, UMEM_DEFAULT);
  char* r = umem_cache_alloc(shorter, UMEM_DEFAULT);
  if (made != 3 || !is_walled(p, 4000) || faults_at(q + 4000) || faults_at(r + 3072)) return 11;
  umem_cache_free(cache, p);
  if (made != 2 || !faults_at(p)) return 12;
  umem_cache_destroy(cache);
  /* Its addresses are not used again at once. */
  for (int i = 0; i < 1000; i++) {
    void* next = umem_alloc(4000, UMEM_DEFAULT);
    if (next == p || next == 0) return 13;
    umem_free(next, 4000);
  }
  return 0;
}
