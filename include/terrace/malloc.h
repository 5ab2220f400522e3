/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The allocator under its own names. They are the same functions as libterrace's malloc, free, operator new and so on: either
 * frees the other's blocks.
 *
 * All functions: Threads: safe. Signals: not safe (as malloc). fork, vfork, clone with CLONE_VM: usable in the child.
 * Failure: NULL with errno ENOMEM, or EINVAL where said; errno is otherwise preserved. Misuse (no block, a double free, a write
 * after free) ends the process with one line on standard error and SIGABRT. Cost: on the fast path one restartable sequence, no
 * atomic instruction, no system call. From ISO C, POSIX and glibc. Since 0.1.
 */
#ifndef TERRACE_MALLOC_H
#define TERRACE_MALLOC_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define TERRACE_MALLOC_ATTRIBUTES __attribute__((malloc, warn_unused_result))
#else
#define TERRACE_MALLOC_ATTRIBUTES
#endif

/** A block of at least @size bytes, aligned to 16; for 0, a unique block that must be freed. */
void* terrace_malloc(size_t size) TERRACE_MALLOC_ATTRIBUTES;

/** Frees @p; NULL is allowed. */
void terrace_free(void* p);

/** A zeroed block of @count * @size bytes; fails also if that overflows. */
void* terrace_calloc(size_t count, size_t size) TERRACE_MALLOC_ATTRIBUTES;

/**
 * A block of @size bytes with the contents of @p, which is gone; on failure @p is untouched. @p NULL: as malloc. @size 0: frees
 * @p and returns NULL, as glibc does. Large blocks grow in place if the addresses behind them are free; else their pages are
 * moved, not copied.
 */
void* terrace_realloc(void* p, size_t size) __attribute__((warn_unused_result));

/** As realloc to @count * @size bytes; fails also if that overflows. */
void* terrace_reallocarray(void* p, size_t count, size_t size) __attribute__((warn_unused_result));

/** A block at a multiple of @alignment, a power of two, else EINVAL. @size need not be a multiple of it (C17 DR 460). */
void* terrace_aligned_alloc(size_t alignment, size_t size) TERRACE_MALLOC_ATTRIBUTES;

/**
 * Stores the block in @out and returns 0; or returns EINVAL (@alignment is not a power of two times sizeof(void *)) or ENOMEM
 * and leaves @out alone. errno is not touched.
 */
int terrace_posix_memalign(void** out, size_t alignment, size_t size);

/** Usable bytes of the block, at least the requested ones; 0 for NULL. */
size_t terrace_malloc_usable_size(const void* p);

/**
 * Empties the buffers of all levels and returns all free pages to the system. @pad is ignored. Returns 1 if memory went back,
 * else 0. Cost: milliseconds; stops every slot briefly.
 */
int terrace_malloc_trim(size_t pad);

/** C23; as free. @size and @alignment are ignored. */
void terrace_free_sized(void* p, size_t size);
void terrace_free_aligned_sized(void* p, size_t alignment, size_t size);

#ifdef __cplusplus
}
#endif
#endif
