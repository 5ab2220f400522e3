/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * OpenZFS's programs bring a header of this name, which maps the interface of libumem to malloc. This one stands in its place,
 * and gives them libumem's own. What OpenZFS expects of its header beyond that: debugging macros and libc's headers, as most of
 * its files get them from here, and umem_cache_reap_now(), which does nothing there either.
 *
 * With its own header OpenZFS may free by umem_free() what strdup() and vasprintf() have allocated, and takes NULL for 0 bytes
 * as a lack of memory (CCM without data). So its kmem_strdup(), kmem_asprintf() and kmem_vasprintf() become two functions below
 * (bench/users/openzfs.py), and 0 bytes become one.
 */
#ifndef TERRACE_USERS_OPENZFS_UMEM_H
#define TERRACE_USERS_OPENZFS_UMEM_H

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/debug.h>
#include_next <umem.h>

/* The program defines these; the library asks for them where the environment says nothing. */
const char* _umem_debug_init(void);
const char* _umem_options_init(void);
const char* _umem_logging_init(void);

static inline void umem_cache_reap_now(umem_cache_t* cache) { (void)cache; }

static inline size_t umem_some(size_t size) { return size == 0 ? 1 : size; }
#define umem_alloc(size, flags) umem_alloc(umem_some(size), flags)
#define umem_zalloc(size, flags) umem_zalloc(umem_some(size), flags)
#define umem_free(memory, size) umem_free(memory, umem_some(size))

static inline char* umem_strdup(const char* text) {
  const size_t size = strlen(text) + 1;
  return (char*)memcpy(umem_alloc(size, UMEM_NOFAIL), text, size);
}

static inline int umem_vasprintf(char** out, const char* format, va_list arguments) {
  char* text = NULL;
  const int length = vasprintf(&text, format, arguments);
  if (length >= 0) *out = umem_strdup(text);
  free(text);
  return length;
}

#endif
