// SPDX-License-Identifier: MIT OR Apache-2.0
/* A cache keeps objects that the program could do without: its reclaim function is called before any allocation is refused,
   once for each, with and without UMEM_NOFAIL. It may allocate and free; what it asks for in vain does not call it again.
   object: umem_malloc
   UMEM_DEBUG:
   UMEM_DEBUG: guards
   on every rung
   ends: 0
   says:
*/
#include "life.h"

#include <sys/resource.h>

enum { most = 400000, object = 4000, limit_mib = 100, wanted = 3000000 };

static umem_cache_t *keeping, *plain;
static void* kept[most];
static int n, calls, inside, keeps_all;

static void give_back(void* ignored) {
  expect(!inside, "reclaim is not called by what it does itself");
  inside = 1;
  ++calls;
  free(malloc(100));
  umem_free(umem_alloc(100, UMEM_DEFAULT), 100);
  expect(umem_alloc((size_t)limit_mib << 20, UMEM_DEFAULT) == NULL, "what is beyond all memory is refused in reclaim");
  while (n > 0 && !keeps_all) umem_cache_free(keeping, kept[--n]);
  inside = 0;
}

static void fill(void) {
  keeps_all = 1;
  for (calls = 0; n < most && (kept[n] = umem_cache_alloc(keeping, UMEM_DEFAULT)) != NULL; calls = 0) ++n;
  expect(calls == 1, "reclaim is called once before an allocation fails, though it gives nothing back");
  expect(n > 5000, "memory was there");
  calls = 0;
  keeps_all = 0;
}

static void expect_reclaim(const void* memory, const char* function) {
  expect(memory != NULL, function);
  expect(calls == 1, function);
}

static int never(void) {
  expect(0, "memory is found before the program is asked what to do");
  return UMEM_CALLBACK_EXIT(1);
}

int main(void) {
  void* p;
  setrlimit(RLIMIT_AS, &(struct rlimit){(rlim_t)limit_mib << 20, (rlim_t)limit_mib << 20});
  umem_nofail_callback(never);
  keeping = umem_cache_create("keeping", object, 0, NULL, NULL, give_back, NULL, NULL, 0);
  plain = umem_cache_create("plain", 200000, 0, NULL, NULL, NULL, NULL, NULL, 0);

  fill();
  expect_reclaim(p = umem_alloc(wanted, UMEM_DEFAULT), "umem_alloc");
  umem_free(p, wanted);
  fill();
  expect_reclaim(p = umem_alloc(wanted, UMEM_NOFAIL), "umem_alloc, UMEM_NOFAIL");
  umem_free(p, wanted);
  fill();
  expect_reclaim(p = umem_alloc_align(wanted, 4096, UMEM_DEFAULT), "umem_alloc_align");
  umem_free_align(p, wanted);
  fill();
  expect_reclaim(p = malloc(wanted), "malloc");
  free(p);
  fill();
  expect_reclaim(p = calloc(1, wanted), "calloc");
  free(p);
  fill();
  expect_reclaim(p = aligned_alloc(4096, wanted), "aligned_alloc");
  free(p);
  fill();
  expect_reclaim(p = realloc(NULL, wanted), "realloc");
  free(p);
  fill();
  void* objects_of_plain[100];
  for (int i = 0; i < 100; ++i)
    expect((objects_of_plain[i] = umem_cache_alloc(plain, UMEM_DEFAULT)) != NULL, "umem_cache_alloc");
  expect(calls == 1, "umem_cache_alloc");
  for (int i = 0; i < 100; ++i) umem_cache_free(plain, objects_of_plain[i]);
  fill();
  p = NULL;
  for (int i = 0; i < 1000; ++i) {  // of the cache itself
    void** const next = umem_cache_alloc(keeping, UMEM_NOFAIL);
    *next = p;
    p = next;
  }
  expect(calls == 1, "umem_cache_alloc of the same cache");
  return 0;
}
