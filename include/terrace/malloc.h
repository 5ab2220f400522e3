/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The allocator under names of its own. libterrace.so also exports the names of libc (malloc, free, ... and the operators new
 * and delete of C++); both sets are the same functions, and blocks may be freed by either.
 *
 * Common to all: Threads: safe. Signals: not safe (as malloc). fork: usable in the child, also of a process with many threads;
 * vfork, and clone with CLONE_VM: usable in the child. errno: set to ENOMEM or EINVAL as documented, otherwise preserved.
 * Misuse (a pointer that is no block, a double free, a block that was written after it was freed) ends the process with one
 * line on standard error and SIGABRT. Cost on the fast path: one restartable sequence, no atomic instruction, no system call.
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

/**
 * terrace_malloc - a block of at least @size bytes, aligned for any type (16 bytes). @size 0: a unique block that must be
 * freed. Returns NULL with errno ENOMEM when there is no memory. ISO C, POSIX. Since 0.1.
 */
void* terrace_malloc(size_t size) TERRACE_MALLOC_ATTRIBUTES;

/** terrace_free - gives @p back; NULL is allowed. errno is preserved. Since 0.1. */
void terrace_free(void* p);

/** terrace_calloc - a zeroed block for @count elements of @size bytes; NULL with ENOMEM also if the product overflows. Since
 * 0.1. */
void* terrace_calloc(size_t count, size_t size) TERRACE_MALLOC_ATTRIBUTES;

/**
 * terrace_realloc - a block of @size bytes with the contents of @p, which is gone. @p NULL: as malloc. @size 0 with @p not
 * NULL: frees @p and returns NULL, as glibc does. NULL with ENOMEM: @p is untouched. Large blocks grow in place where the
 * addresses behind them are free, else their pages are moved, not copied. Since 0.1.
 */
void* terrace_realloc(void* p, size_t size) __attribute__((warn_unused_result));

/** terrace_reallocarray - realloc to @count * @size bytes; NULL with ENOMEM if that overflows. Since 0.1. */
void* terrace_reallocarray(void* p, size_t count, size_t size) __attribute__((warn_unused_result));

/**
 * terrace_aligned_alloc - a block of @size bytes at a multiple of @alignment, a power of two; else NULL with EINVAL.
 * @size need not be a multiple of @alignment (C17 DR 460). NULL with ENOMEM when there is no memory. Since 0.1.
 */
void* terrace_aligned_alloc(size_t alignment, size_t size) TERRACE_MALLOC_ATTRIBUTES;

/**
 * terrace_posix_memalign - as POSIX: stores the block in @out and returns 0; EINVAL if @alignment is not a power of two
 * multiple of sizeof(void *), ENOMEM without memory; then @out is untouched. errno is not touched. Since 0.1.
 */
int terrace_posix_memalign(void** out, size_t alignment, size_t size);

/**
 * terrace_malloc_usable_size - how many bytes of the block may be used, at least what was asked for; 0 for NULL. Since 0.1.
 */
size_t terrace_malloc_usable_size(const void* p);

/**
 * terrace_malloc_trim - drains the buffers of all levels and gives all free pages back to the system, at once. @pad is
 * ignored. Returns 1 if memory was given back, else 0. Cost: milliseconds; stops every slot for a moment. Since 0.1.
 */
int terrace_malloc_trim(size_t pad);

/** terrace_free_sized, terrace_free_aligned_sized - C23: free with what was asked for; the values are not looked at. Since 0.1.
 */
void terrace_free_sized(void* p, size_t size);
void terrace_free_aligned_sized(void* p, size_t alignment, size_t size);

#ifdef __cplusplus
}
#endif
#endif
