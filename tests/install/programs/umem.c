/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include <dlfcn.h>
#include <malloc.h>
#include <stdlib.h>
#include <umem.h>

static int made;
static int make(void* object, void* data, int flags) {
  (void)object, (void)data, (void)flags;
  return ++made == 0;
}

int main(int argc, char** argv) {
  void* (*alloc)(size_t, int) = umem_alloc;
  if (argc > 1) { /* as Varnish does it */
    void* library = dlopen(argv[1], RTLD_NOW);
    if (library == NULL || (alloc = __extension__(void* (*)(size_t, int)) dlsym(library, "umem_alloc")) == NULL) return 1;
  }
  if (alloc(100, UMEM_DEFAULT) == NULL) return 2;
  umem_cache_t* cache = umem_cache_create("things", 24, 0, make, NULL, NULL, NULL, NULL, 0);
  umem_cache_free(cache, umem_cache_alloc(cache, UMEM_NOFAIL));
  umem_cache_destroy(cache);
  umem_free(umem_zalloc(100, UMEM_DEFAULT), 100);
  free(malloc(100));
  return made == 1 ? 0 : 3;
}
