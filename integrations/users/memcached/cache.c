/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Stands in the place of memcached's cache.c: see cache.h. */
#include "cache.h"

#ifndef NDEBUG
int cache_error = 0;
#endif

cache_t* cache_create(const char* name, size_t bufsize, size_t align) {
  cache_t* const cache = umem_zalloc(sizeof(cache_t), UMEM_DEFAULT);
  if (cache == NULL) return NULL;
  cache->objects = umem_cache_create((char*)name, bufsize, align, NULL, NULL, NULL, NULL, NULL, 0);
  if (cache->objects != NULL) return cache;
  umem_free(cache, sizeof(cache_t));
  return NULL;
}

void cache_destroy(cache_t* cache) {
  umem_cache_destroy(cache->objects);
  umem_free(cache, sizeof(cache_t));
}

static int has_room(cache_t* cache) {
  const int limit = __atomic_load_n(&cache->limit, __ATOMIC_RELAXED);
  if (__atomic_add_fetch(&cache->total, 1, __ATOMIC_RELAXED) <= limit || limit == 0) return 1;
  __atomic_sub_fetch(&cache->total, 1, __ATOMIC_RELAXED);
  return 0;
}

void* do_cache_alloc(cache_t* cache) {
  if (!has_room(cache)) return NULL;
  void* const object = umem_cache_alloc(cache->objects, UMEM_DEFAULT);
  if (object == NULL) __atomic_sub_fetch(&cache->total, 1, __ATOMIC_RELAXED);
  return object;
}

void do_cache_free(cache_t* cache, void* object) {
  umem_cache_free(cache->objects, object);
  __atomic_sub_fetch(&cache->total, 1, __ATOMIC_RELAXED);
}

/* Its caches need no lock of memcached's. */
void* cache_alloc(cache_t* cache) { return do_cache_alloc(cache); }
void cache_free(cache_t* cache, void* object) { do_cache_free(cache, object); }

void cache_set_limit(cache_t* cache, int limit) { __atomic_store_n(&cache->limit, limit, __ATOMIC_RELAXED); }
