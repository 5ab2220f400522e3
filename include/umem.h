/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Object caches and memory by size: the interface of libumem, as illumos and Solaris have it (umem_alloc(3MALLOC),
 * umem_cache_create(3MALLOC), umem_debug(3MALLOC)), on Terrace's levels: core, processor, slabs. Programs written for it build
 * unchanged with `cc prog.c -lumem`. From
 *   [VMEM] J. Bonwick, J. Adams: Magazines and Vmem: Extending the Slab Allocator to Many CPUs and Arbitrary Resources, USENIX
 * 2001 [PTC]  R. Mustacchi: Per-thread caching in libumem, 2012
 *
 * Two objects have it. libumem.so.1 is the interface alone: malloc stays whose it was, and a program may also get it by dlopen.
 * libumem_malloc.so.1 has malloc and its family, too, for LD_PRELOAD or linking. Other heaps may be
 * in the process, each of our objects as well; of two that have a name, the first one's is used.
 *
 * Common to all functions. Sizes are bytes. They may be called by any thread at any time after libc's start, in a child of
 * fork, and in a child of vfork not at all. None may be called in a signal handler. errno is set where memory is refused
 * (ENOMEM). Since 0.1.
 *
 * What is not as there: blocks have no tags, so malloc(4) takes 16 bytes and not 32; memory is refused with ENOMEM, never
 * EAGAIN; umem_free(NULL, n) does nothing for any n.
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
#define UMEM_NOFAIL 0x0100  /* then umem_nofail_callback()'s function decides; never NULL */
#define UMEM_FLAGS 0xffff

/* Flags of a cache. */
#define UMC_NOTOUCH                                                                                                           \
  0x00010000                      /* the cache may not write to objects: no debugging that does. Objects are never written to \
                                     while they are free anyway */
#define UMC_NODEBUG 0x00020000    /* UMEM_DEBUG does not apply */
#define UMC_NOMAGAZINE 0x00040000 /* free objects are not kept: each allocation constructs, each free destructs */
#define UMC_NOHASH 0x00080000     /* EINVAL with UMC_NOTOUCH, and for objects above a page less 128 bytes; no further meaning */

/* What the function of umem_nofail_callback() returns. */
#define UMEM_CALLBACK_RETRY 0
#define UMEM_CALLBACK_EXIT(status) (0x100 | ((status)&0xff))

typedef struct umem_cache umem_cache_t;

/* Makes an object of raw memory. 0, or anything else when it could not: then the allocation fails, and the memory is as it was.
   `flags` is UMEM_DEFAULT, whatever was asked for, and is to be passed on to allocations that it makes. */
typedef int umem_constructor_t(void* object, void* private_data, int flags);
/* Undoes what the constructor did. */
typedef void umem_destructor_t(void* object, void* private_data);
/*
 * Memory is wanted back: what the program keeps in constructed objects without need may be freed now. By umem_reap(); and once
 * before an allocation is refused, with UMEM_NOFAIL before umem_nofail_callback()'s function is asked: of umem_alloc() and its
 * relatives, umem_cache_alloc(), and malloc's family in libumem_malloc.so; vmem_alloc() asks nobody. Then it is called by the
 * thread that asked for memory, with no lock of the library held; so it may take no lock that the program holds while it
 * allocates, unless it tries only. One thread at a time is in these functions; others that find no memory wait for it, at most
 * a second, and try again. It may allocate and free; where it is refused memory, no reclaim is called. It returns, and may not
 * destroy its own cache.
 */
typedef void umem_reclaim_t(void* private_data);
typedef int umem_nofail_callback_t(void);

/*
 * Memory of `size` bytes, uninitialised; for umem_zalloc() zeroed. NULL for size 0, and when there is none (errno ENOMEM),
 * unless `flags` is UMEM_NOFAIL. Aligned to 8 bytes, from 16 bytes on to 16, to 64 where the size is a multiple of 64, to a
 * page where it is one of the page size. The caller gives it back by umem_free() with the same size, by no other function.
 * Cost: that of malloc, 2 to 3 ns; from a page on, and for multiples of a page, some more.
 */
void* umem_alloc(size_t size, int flags);
void* umem_zalloc(size_t size, int flags);

/*
 * Gives memory of umem_alloc() or umem_zalloc() back. `size` is what was asked for; with UMEM_DEBUG it is checked. NULL is
 * ignored. A pointer that is not of this library, or no multiple of 16, ends the process with a line on standard error; an
 * address inside of a block at a multiple of 16 is found as free() finds it, when it goes back to its slab, or at once with
 * UMEM_DEBUG.
 */
void umem_free(void* memory, size_t size);

/*
 * As umem_alloc(), at a multiple of `align`, a power of two (less than 8: 8). NULL for size 0, and with EINVAL when `align` is
 * no power of two. Given back by umem_free_align() with the same size. umem_free() does the same, and is told with UMEM_DEBUG
 * only. The names ending in -ed are those that OpenZFS uses.
 */
void* umem_alloc_align(size_t size, size_t align, int flags);
void umem_free_align(void* memory, size_t size);
void* umem_alloc_aligned(size_t size, size_t align, int flags);
void umem_free_aligned(void* memory, size_t size);

/*
 * What happens when an allocation with UMEM_NOFAIL finds no memory: `callback`, which is called by the thread that allocates,
 * with no lock held, by several threads at once perhaps. UMEM_CALLBACK_RETRY: it tries again. UMEM_CALLBACK_EXIT(n): exit(n),
 * by one thread; others wait for the end. The callback may also leave by longjmp or pthread_exit. NULL, the default, is
 * UMEM_CALLBACK_EXIT(255). Another allocation with UMEM_NOFAIL that fails in exit()'s handlers ends the process by abort().
 */
void umem_nofail_callback(umem_nofail_callback_t* callback);

/*
 * An object cache: objects of `bufsize` bytes at multiples of `align` (a power of two up to the page size; 0: 8, from 16 bytes
 * on 16; less than 8: 8). `constructor`, `destructor` and `reclaim` may be NULL; each gets `private_data`. `name`, of which 31
 * bytes are kept, is for debuggers. `source`: NULL, or an arena, of which each object is a piece then; it lives as long as the
 * cache and its objects. If what it hands out is no memory, but numbers for example, `cflags` has UMC_NOTOUCH, and `align` may
 * be less than 8. `cflags`: 0 or of UMC_...
 *
 * An object is constructed when it first comes to the program, and stays so when it is freed: the next one who allocates it
 * finds it as it was freed, which has to be constructed state. The destructor runs before its memory goes back. No lock of the
 * library is held in either.
 *
 * NULL with errno EINVAL (no name, size 0, an alignment that is no power of two or beyond a page, UMC_NOTOUCH with UMC_NOHASH,
 * UMC_NOHASH for large objects), ENOMEM (a size that overflows when it is rounded up) or EAGAIN (no memory, or 16,384 caches).
 * Cost: some microseconds, and less than a KiB of memory until it is used.
 */
umem_cache_t* umem_cache_create(char* name, size_t bufsize, size_t align, umem_constructor_t* constructor,
                                umem_destructor_t* destructor, umem_reclaim_t* reclaim, void* private_data, vmem_t* source,
                                int cflags);

/*
 * Frees the cache and its memory. All objects must have been freed, and nobody uses it any more; its destructor has run for all
 * of them when this returns, and is called for none later. Waits for its `reclaim` and its destructor where another thread is
 * in one, so neither may call this for its own cache. An address that is no cache's, or no longer one's, ends the process with
 * a line on standard error. With objects in use it says so there ("umem_cache_destroy: 'NAME' (ADDRESS) not empty"); the
 * objects stay readable, and the cache is never reused.
 */
void umem_cache_destroy(umem_cache_t* cache);

/*
 * A constructed object of the cache, or NULL when there is no memory or its constructor failed, unless `flags` is UMEM_NOFAIL.
 * It is given back by umem_cache_free() to the same cache, in constructed state. Cost: that of malloc where an object was freed
 * on this core before; else a lock and the constructor.
 */
void* umem_cache_alloc(umem_cache_t* cache, int flags);

/*
 * Gives an object back. NULL is ignored. An address that is no object's ends the process with a line on standard error: at once
 * if it is not in any cache's memory, or no multiple of the largest power of two, up to 64, that all objects of the cache are
 * multiples of (the largest that divides `bufsize` rounded up to the alignment). Else an address inside an object is taken, may
 * be handed out by the next allocation, and is found when it goes back to its slab, or to its arena. With UMEM_DEBUG, and for
 * objects above 256 KiB, every address is looked at.
 */
void umem_cache_free(umem_cache_t* cache, void* object);

/*
 * Memory is wanted back. At most once in `reap_interval` seconds (10), each cache's `reclaim` is called and what caches hold
 * that has not been used for a while is destructed and freed. In a process of one thread before it returns, else by a thread of
 * its own that ends when that is done.
 */
void umem_reap(void);

/* Calls `function` with each cache that there is. Caches that are created meanwhile may be left out; none may be destroyed. */
void umem_cache_applyall(void (*function)(umem_cache_t* cache));

/*
 * Fault injection with UMEM_DEBUG: of the allocations without UMEM_NOFAIL about one in `rate` fails; 1: all; 0: none. Not to be
 * called by several threads at once.
 */
void umem_setmtbf(uint32_t rate);

#ifdef __cplusplus
}
#endif

#endif
