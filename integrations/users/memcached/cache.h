/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * memcached's object caches (cache.h of its sources) on those of libumem. In earlier versions its own header did so by
 * macros where configure found umem.h; that of 1.6.18 only knows malloc. The functions and the fields `total` and `freecurr`
 * are what memcached uses; `limit` is what cache_set_limit() says.
 */
#ifndef CACHE_H
#define CACHE_H

#include "queue.h" /* thread.c has its lists from here */

#include <pthread.h>
#include <umem.h>

#define HAVE_UMEM_H 1 /* the test of memcached's own red zones does not apply */

#ifndef NDEBUG
extern int cache_error;
#endif

typedef struct {
  umem_cache_t* objects;
  int total;    /* objects in use; written atomically */
  int freecurr; /* 0: free objects are the library's */
  int limit;    /* 0: none */
} cache_t;

cache_t* cache_create(const char* name, size_t bufsize, size_t align);
void cache_destroy(cache_t* handle);
void* cache_alloc(cache_t* handle);
void* do_cache_alloc(cache_t* handle);
void cache_free(cache_t* handle, void* object);
void do_cache_free(cache_t* handle, void* object);
void cache_set_limit(cache_t* handle, int limit);

#endif
