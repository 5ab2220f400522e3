/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Object caches and memory by size: the interface of libumem (illumos' umem_alloc(3MALLOC), umem_cache_create(3MALLOC),
 * umem_debug(3MALLOC)) on Terrace's levels. Programs written for it build unchanged with -lumem. From
 *   [VMEM] J. Bonwick, J. Adams: Magazines and Vmem: Extending the Slab Allocator to Many CPUs and Arbitrary Resources, USENIX
 *   2001
 *   [PTC] R. Mustacchi: Per-thread caching in libumem, 2012
 * docs/guide/umem.md: libraries, debugging, options, what differs from illumos.
 *
 * libumem.so.1 leaves malloc alone and may be loaded by dlopen. libumem_malloc.so.1 replaces malloc and its family, for
 * LD_PRELOAD or linking. Both may share a process with other heaps; of two with the same name the first one's function is used.
 *
 * All functions: sizes are bytes. Threads: safe from libc's start on. Signals: not safe. fork: usable in the child. vfork: not
 * usable in the child. errno is ENOMEM where memory is refused. Since 0.1.
 * A wrong address in a free ends the process with a line on standard error, at once with UMEM_DEBUG; without it
 * docs/guide/umem.md says which addresses inside a block are found only when the block goes back to its slab.
 */
#ifndef _UMEM_H
#define _UMEM_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/vmem.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Flags of an allocation: one of the first two. */
#define UMEM_DEFAULT 0x0000 /* NULL when there is no memory */
#define UMEM_NOFAIL 0x0100  /* never NULL: umem_nofail_callback()'s function decides */
#define UMEM_FLAGS 0xffff

/* Flags of a cache. */
#define UMC_NOTOUCH 0x00010000    /* no debugging that writes to objects; free ones are never written to anyway */
#define UMC_NODEBUG 0x00020000    /* UMEM_DEBUG does not apply */
#define UMC_NOMAGAZINE 0x00040000 /* free objects are not kept: each allocation constructs, each free destructs */
#define UMC_NOHASH 0x00080000 /* no audit, no firewall; EINVAL with UMC_NOTOUCH and for objects above a page less 128 bytes */

/* Results of umem_nofail_callback()'s function. */
#define UMEM_CALLBACK_RETRY 0
#define UMEM_CALLBACK_EXIT(status) (0x100 | ((status)&0xff))

typedef struct umem_cache umem_cache_t;

/* Makes an object of raw memory. Returns 0; or another value, and the allocation fails; the memory is then as before. `flags`
   is always UMEM_DEFAULT, for allocations that it makes. */
typedef int umem_constructor_t(void* object, void* private_data, int flags);
/* Undoes the constructor. */
typedef void umem_destructor_t(void* object, void* private_data);
/*
 * Frees what the program keeps in constructed objects without need. umem_reap() calls it. So does an allocation by any function
 * here, or by malloc's family in libumem_malloc.so, once before it is refused or asks umem_nofail_callback()'s function; not
 * vmem_alloc(). It then runs in the allocating thread without a lock of the library, so it may only try to take locks that the
 * program holds while it allocates. One thread at a time is in such functions; others without memory wait up to ten seconds and
 * try again. It may allocate (a refusal calls no reclaim) and free. It must return, and must not destroy its own cache.
 */
typedef void umem_reclaim_t(void* private_data);
typedef int umem_nofail_callback_t(void);

/*
 * Memory of `size` bytes; umem_zalloc() zeroes it. NULL for size 0, and when memory is refused, unless `flags` is UMEM_NOFAIL.
 * Alignment: 8 bytes; 16 from 16 bytes on; 64 for multiples of 64; a page for multiples of a page. Only umem_free() with the
 * same size may free it. Cost: that of malloc, 2 to 3 ns; more from a page on.
 */
void* umem_alloc(size_t size, int flags);
void* umem_zalloc(size_t size, int flags);

/* Frees memory of umem_alloc() or umem_zalloc(). `size` is as requested; UMEM_DEBUG checks it. NULL is ignored. */
void umem_free(void* memory, size_t size);

/*
 * As umem_alloc(), at a multiple of `align`, a power of two (below 8: 8), else NULL with EINVAL. umem_free_align() frees it,
 * with the same size; umem_free() does too, but UMEM_DEBUG reports it. The names in -ed are OpenZFS'.
 */
void* umem_alloc_align(size_t size, size_t align, int flags);
void umem_free_align(void* memory, size_t size);
void* umem_alloc_aligned(size_t size, size_t align, int flags);
void umem_free_aligned(void* memory, size_t size);

/*
 * Sets what happens when an allocation with UMEM_NOFAIL finds no memory: its thread calls `callback` without a lock, perhaps
 * while other threads do. UMEM_CALLBACK_RETRY: it tries again. UMEM_CALLBACK_EXIT(n): one thread calls exit(n), others wait;
 * another such failure in exit()'s handlers calls abort(). The callback may leave by longjmp or pthread_exit. NULL, the
 * default: UMEM_CALLBACK_EXIT(255).
 */
void umem_nofail_callback(umem_nofail_callback_t* callback);

/*
 * Makes a cache of objects of `bufsize` bytes at multiples of `align`, a power of two up to a page (below 8: 8; 0: 16 for
 * objects of 16 bytes or more, else 8). `constructor`, `destructor` and `reclaim` may be NULL; each gets `private_data`.
 * Debuggers show 31 bytes of `name`. `source`: NULL, or an arena that hands out the objects and outlives them and the cache. If
 * it hands out something other than memory, numbers for example, `cflags` needs UMC_NOTOUCH, and `align` may be below 8.
 * `cflags`: UMC_... or 0. [VMEM]
 *
 * An object is constructed when the program first gets it, and stays constructed while free: free it in constructed state. The
 * destructor runs before its memory goes back. Both run without a lock of the library.
 *
 * Returns the cache; or NULL with errno EINVAL (no name, size 0, `align` no power of two or above a page, UMC_NOHASH with
 * UMC_NOTOUCH or large objects), ENOMEM (the rounded size overflows) or EAGAIN (no memory, or 16,384 caches). Cost:
 * microseconds, and less than a KiB until used.
 */
umem_cache_t* umem_cache_create(char* name, size_t bufsize, size_t align, umem_constructor_t* constructor,
                                umem_destructor_t* destructor, umem_reclaim_t* reclaim, void* private_data, vmem_t* source,
                                int cflags);

/*
 * Frees the cache and its memory. Nobody may use it, and all objects must be free. Their destructor has run when this returns.
 * It waits for other threads in the cache's `reclaim` or destructor, so neither may call it for its own cache. With objects in
 * use, a line says "umem_cache_destroy: 'NAME' (ADDRESS) not empty"; they stay readable, and the cache is not reused.
 */
void umem_cache_destroy(umem_cache_t* cache);

/*
 * A constructed object, for umem_cache_free() to the same cache. NULL, unless `flags` is UMEM_NOFAIL, when memory is refused or
 * the constructor failed. Cost: that of malloc if this core has a free object; else a lock and the constructor.
 */
void* umem_cache_alloc(umem_cache_t* cache, int flags);

/* Frees an object of the cache, which is in constructed state. NULL is ignored. Objects above 256 KiB are checked as with
 * UMEM_DEBUG. */
void umem_cache_free(umem_cache_t* cache, void* object);

/*
 * Calls each cache's `reclaim`, and destructs and frees cached objects unused for a while; at most once in `reap_interval` (10)
 * seconds. With one thread it does so before it returns, else in a thread that ends afterwards.
 */
void umem_reap(void);

/* Calls `function` with each cache; perhaps not with those created meanwhile. No cache may be destroyed meanwhile. */
void umem_cache_applyall(void (*function)(umem_cache_t* cache));

/* Fault injection, with UMEM_DEBUG: about one in `rate` allocations without UMEM_NOFAIL fails; 0: none. One thread at once. */
void umem_setmtbf(uint32_t rate);

#ifdef __cplusplus
}
#endif

#endif
