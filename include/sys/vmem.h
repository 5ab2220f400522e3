/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * vmem: arenas of anything that has numbers. An arena is a set of spans, ranges of integers: addresses of memory, identifiers,
 * ports. It hands out pieces of them and takes them back, by exact size and with constraints on where a piece lies. An arena
 * may import its spans from another one, or from functions of the program's. Compatible in source and behaviour with the
 * user-level vmem of illumos. From
 *
 *   [VMEM] J. Bonwick, J. Adams: Magazines and Vmem: Extending the Slab Allocator to Many CPUs and Arbitrary Resources,
 *          USENIX Annual Technical Conference 2001, section 4
 *
 * docs/theory/82-vmem.md explains how it works.
 *
 * Common to all functions. Sizes are bytes, or whatever the arena's numbers count. An arena never touches what it hands out:
 * its own data lie elsewhere, and never in memory of malloc, so arenas work in any process at any time, before main() and below
 * malloc. errno is touched only where said. Since 0.1.
 *
 * Threads: all functions are safe for several threads; an arena is not used any more once vmem_destroy() is called. No lock is
 * held while an arena's afunc or ffunc runs. Signals: not safe, as the handler may have interrupted whoever has the arena's
 * lock. fork: the child has all arenas as they were. What another thread was importing or giving back in that instant is lost
 * to it, as is what such a thread had allocated. vfork: not usable in the child.
 *
 * Wrong frees end the process with one line on standard error. It names the function, the address, the size and the arena:
 *
 *     terrace: vmem_free(): bad free of 0x7f1000, 4096 bytes, in arena 'ports'
 *     terrace: vmem_free(): wrong size 4096 of 0x7f1000, which has 8192 bytes, in arena 'ports'
 */
#ifndef _SYS_VMEM_H
#define _SYS_VMEM_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * What vmflag consists of: one of the first three, and at most one policy.
 * VM_SLEEP: as VM_NOSLEEP, since nothing here ever waits for memory. VM_NOSLEEP: failure is NULL and errno. VM_PANIC: failure
 * ends the process with a line that names the arena and the size. VM_KMFLAGS: the bits that an afunc is given, though without
 * VM_PANIC, since the arena may try again.
 */
#define VM_SLEEP 0x00000000
#define VM_NOSLEEP 0x00000001
#define VM_PANIC 0x00000002
#define VM_KMFLAGS 0x000000ff

/*
 * Policies. None of them, "instant fit": the first list of free pieces in which any is long enough, in constant time; if there
 * is none, every free piece that may do. VM_BESTFIT: the shortest free piece; looks at those of similar size, until one has
 * exactly the size. VM_FIRSTFIT: the lowest address; looks at the pieces below it. VM_NEXTFIT: the lowest address behind the
 * piece that was last allocated so, then as VM_FIRSTFIT; looks at the pieces in between. It is for numbers that should not be
 * used again soon, such as identifiers. Whatever the policy, an allocation fails only if no free piece meets its constraints.
 */
#define VM_BESTFIT 0x00000100
#define VM_FIRSTFIT 0x00000200
#define VM_NEXTFIT 0x00000400

/* What vmem_walk() and vmem_size() look at: any of these. */
#define VMEM_ALLOC 0x01           /* allocated pieces; those in quantum caches are */
#define VMEM_FREE 0x02            /* free ones */
#define VMEM_SPAN 0x10            /* whole spans */
#define VMEM_ROTOR 0x20           /* where VM_NEXTFIT goes on */
#define VMEM_WALKER 0x40          /* accepted: walks leave no marks that others could see */
#define VMEM_REENTRANT 0x80000000 /* the arena is not locked while the function of vmem_walk() runs */

typedef struct vmem vmem_t;

/**
 * vmem_alloc_t - gives an arena a span; vmem_alloc() itself is one.
 * @source: as the arena was made with.
 * @size: bytes, a multiple of the importing arena's quantum, and of the source's if that is an arena.
 * @vmflag: of the allocation that needs it, cut to VM_KMFLAGS and without VM_PANIC.
 *
 * Returns exactly @size bytes, from a multiple of the importing arena's quantum on, of which the arena has none yet;
 * or NULL. What is not so ends the process. May use any arena, malloc, and locks of its own; must not unwind.
 * Threads: called by several.
 */
typedef void* vmem_alloc_t(vmem_t* source, size_t size, int vmflag);
/**
 * vmem_free_t - takes a span back, whole, as it was got by the vmem_alloc_t; vmem_free() itself is one. Otherwise as
 * vmem_alloc_t.
 */
typedef void vmem_free_t(vmem_t* source, void* addr, size_t size);

/**
 * vmem_create - makes an arena.
 * @name: for messages and debuggers; copied, up to 31 bytes of it.
 * @base, @size: the first span, as of vmem_add(); NULL and 0: none.
 * @quantum: a power of two, the unit of all spans and pieces. What is asked for is rounded up to it.
 * @afunc: gives the arena a span when it has no piece for a request; NULL: nothing is imported.
 * @ffunc: gets a span back as soon as it is free as a whole; NULL: imported spans stay.
 * @source: the first argument of both, for them to use: mostly the arena to import from, which must outlive this one. What is
 *          imported from an arena is rounded up to its quantum. If @afunc is vmem_alloc(), its quantum may be the smaller one.
 * @qcache_max: freed pieces of vmem_alloc() of up to that many bytes, and of up to 16 quanta, are kept in quantum caches, up to
 *          16 of each size. They are handed out again without a search, and count as allocated meanwhile. All are freed by
 *          vmem_destroy(), and by a request that would fail otherwise. 0: none.
 * @vmflag: VM_PANIC, or VM_NOSLEEP.
 *
 * Returns the arena, which the caller destroys; or NULL and errno: EINVAL, @name is NULL, @quantum is no power of two, or the
 * first span can not be (see vmem_add()); ENOMEM, there is no memory for its data.
 * Threads: safe. Cost: a lock; proportional to the number of arenas; a page of memory, which later arenas use again. [VMEM]
 */
vmem_t* vmem_create(const char* name, void* base, size_t size, size_t quantum, vmem_alloc_t* afunc, vmem_free_t* ffunc,
                    vmem_t* source, size_t qcache_max, int vmflag);

/**
 * vmem_destroy - ends an arena. What is in its quantum caches is freed first, so spans may go back to the source.
 * Nothing should be allocated: otherwise one line on standard error says how many bytes are, and imported spans that have some
 * of them are not given back. An arena that another one has as its source ends the process, with a line that names both.
 * Threads: no other may use the arena. Cost: proportional to its pieces, and to the number of arenas. [VMEM]
 */
void vmem_destroy(vmem_t* vmp);

/**
 * vmem_add - gives an arena one more span, which stays.
 * @addr, @size: multiples of the quantum, not 0; @addr + @size must not be 2^64 or more. The span stays the caller's: it is
 *          freed by nobody, and may be used otherwise when the arena has been destroyed.
 *
 * Returns @addr; or NULL and errno: EINVAL, it is no such range, or the arena has some of it already; ENOMEM, there is no
 * memory for the arena's data. Spans that touch are not joined: no piece lies across two.
 * Threads: safe. Cost: a lock; logarithmic in the number of spans. [VMEM]
 */
void* vmem_add(vmem_t* vmp, void* addr, size_t size, int vmflag);

/**
 * vmem_alloc - a piece of @size bytes, at a multiple of the quantum.
 * @size: bytes; the piece has them rounded up to the quantum.
 * @vmflag: see above. A policy does not matter to what comes from a quantum cache.
 *
 * If the arena has no such piece, it imports a span. If that fails, it empties its quantum caches and tries both again.
 * Returns the piece, to be freed with the same @size; or NULL. errno is ENOMEM then, but for @size 0, when it is as it was.
 * Contents: as whoever had the piece last, or the source, has left them.
 * Threads: safe. Cost: a lock and constant time by instant fit or from a quantum cache; afunc. [VMEM]
 */
void* vmem_alloc(vmem_t* vmp, size_t size, int vmflag);

/**
 * vmem_xalloc - a piece with constraints.
 * @size: bytes, as of vmem_alloc(). Never comes from a quantum cache.
 * @align: a power of two, at least the quantum; 0: the quantum.
 * @phase: below @align, a multiple of the quantum: the piece begins @phase bytes behind a multiple of @align.
 * @nocross: 0, or a power of two, at least @align and @phase + @size: [piece, piece + @size) has no multiple of it inside,
 *          though the piece may begin or end there.
 * @minaddr, @maxaddr: the piece lies within [@minaddr, @maxaddr). NULL: no such limit.
 * @vmflag: see above.
 *
 * A span is imported only without @nocross, @minaddr and @maxaddr, as any address will do then. If afunc is not vmem_alloc(),
 * more is imported for a larger @align, and the rest is free.
 * Returns the piece, to be freed with the same @size by vmem_xfree(); or NULL and errno: EINVAL, the constraints are not as
 * said or contradict each other; ENOMEM, no free piece meets them. @size 0: NULL, errno as it was.
 * Threads: safe. Cost: without @nocross, @minaddr and @maxaddr as vmem_alloc(); with them, free pieces of the size and above
 * are looked at one by one. [VMEM]
 */
void* vmem_xalloc(vmem_t* vmp, size_t size, size_t align, size_t phase, size_t nocross, void* minaddr, void* maxaddr,
                  int vmflag);

/**
 * vmem_free - takes a piece back: into a quantum cache if it is of such a size, else to the arena, where it is joined with free
 * neighbours. An imported span that is free as a whole then goes back to the source.
 * @addr, @size: as it was allocated with. NULL and 0: nothing happens. What was not allocated, or is free already, or was
 *          allocated with another @size, ends the process (see above).
 *
 * errno: untouched, but by ffunc. Threads: safe. Cost: a lock and constant time; ffunc. [VMEM]
 */
void vmem_free(vmem_t* vmp, void* addr, size_t size);

/**
 * vmem_xfree - as vmem_free(), and never into a quantum cache: for pieces of vmem_xalloc(), and for any piece that is to go to
 * the arena at once.
 */
void vmem_xfree(vmem_t* vmp, void* addr, size_t size);

/**
 * vmem_contains - 1 if [@addr, @addr + @size) lies in one span of the arena, allocated or not; 0 otherwise.
 * Threads: safe. Cost: a lock; logarithmic in the number of spans.
 */
int vmem_contains(vmem_t* vmp, void* addr, size_t size);

/**
 * vmem_walk - calls a function for each piece and span of certain types, in the order of addresses, a span before its pieces.
 * @typemask: VMEM_ALLOC, VMEM_FREE, VMEM_SPAN, VMEM_ROTOR in any combination. The rotor comes last, with size 0.
 * @func: gets @arg, the address and the size; of an allocated piece the size that it is to be freed with. Pieces in quantum
 *          caches are allocated, and have whole quanta. Must not unwind.
 *
 * Without VMEM_REENTRANT the arena is locked meanwhile: @func sees one state of it, and must not use the arena, as it would
 * wait for itself. With VMEM_REENTRANT the arena is not locked while @func runs: @func may use it, and so may others. What is
 * there all the time is reported once; of what comes, goes, or is split or joined meanwhile, some is not.
 * Threads: safe. Cost: proportional to pieces and spans of all types.
 */
void vmem_walk(vmem_t* vmp, int typemask, void (*func)(void* arg, void* addr, size_t size), void* arg);

/**
 * vmem_size - bytes of the arena, in whole quanta: with VMEM_ALLOC those that are allocated, quantum caches included; with
 * VMEM_FREE those that are free. With both, of all spans. Other bits of @typemask do nothing.
 * Threads: safe. Cost: a lock.
 */
size_t vmem_size(vmem_t* vmp, int typemask);

/**
 * vmem_heap_arena - the arena of the process's memory: spans are mapped from the system, 1 MiB at least, and unmapped when they
 * are free as a whole. Its quantum is the page. Pieces can be read and written; their contents are not defined.
 * @allocp, @freep: unless NULL, get the functions to import from it with: vmem_alloc and vmem_free.
 * Returns the arena, always the same, which must not be destroyed; or NULL and errno ENOMEM, there is no memory for its data.
 * Threads: safe. Cost: a load, after the first time.
 */
vmem_t* vmem_heap_arena(vmem_alloc_t** allocp, vmem_free_t** freep);

#ifdef __cplusplus
}
#endif
#endif
