/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * vmem arenas. An arena holds spans, ranges of integers: addresses, identifiers, ports. It hands out pieces and takes them back
 * by exact size. It may import spans from another arena or from functions of the program. Compatible in source and behaviour
 * with illumos' user-level vmem. From
 *
 *   [VMEM] J. Bonwick, J. Adams: Magazines and Vmem: Extending the Slab Allocator to Many CPUs and Arbitrary Resources,
 *          USENIX Annual Technical Conference 2001, section 4
 *
 * docs/theory/82-vmem.md explains how it works.
 *
 * All functions: sizes are bytes, or the arena's unit. An arena never touches what it hands out, and keeps its own data outside
 * malloc, so it works before main() and below malloc. errno is touched only where said. Since 0.1.
 *
 * Threads: safe, before vmem_destroy(). No lock is held while afunc or ffunc runs. Signals: not safe. fork: the child has all
 * arenas as they were; what another thread was importing, giving back or had allocated is lost to it. vfork: not usable in the
 * child.
 *
 * A wrong free ends the process with one line on standard error:
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
 * vmflag: one of the first three, and at most one policy. VM_NOSLEEP: failure is NULL and errno. VM_SLEEP: the same, since
 * nothing waits for memory. VM_PANIC: failure ends the process with a line that names the arena and the size. VM_KMFLAGS: the
 * bits that an afunc gets, without VM_PANIC, since the arena may try again.
 */
#define VM_SLEEP 0x00000000
#define VM_NOSLEEP 0x00000001
#define VM_PANIC 0x00000002
#define VM_KMFLAGS 0x000000ff

/*
 * Policies. None, "instant fit": the first list whose pieces are all long enough, in constant time; if there is none, any free
 * piece that fits. VM_BESTFIT: the shortest piece; searches pieces of similar size until one fits exactly. VM_FIRSTFIT: the
 * lowest address; searches from there. VM_NEXTFIT: the lowest address behind the last piece allocated so, then as VM_FIRSTFIT;
 * for numbers that should not be reused soon. Any policy fails only if no free piece meets the constraints.
 */
#define VM_BESTFIT 0x00000100
#define VM_FIRSTFIT 0x00000200
#define VM_NEXTFIT 0x00000400

/* For vmem_walk() and vmem_size(), in any combination. */
#define VMEM_ALLOC 0x01           /* allocated pieces, also in quantum caches */
#define VMEM_FREE 0x02            /* free ones */
#define VMEM_SPAN 0x10            /* whole spans */
#define VMEM_ROTOR 0x20           /* where VM_NEXTFIT goes on */
#define VMEM_WALKER 0x40          /* no effect: walks leave no marks */
#define VMEM_REENTRANT 0x80000000 /* vmem_walk() calls its function without the lock */

typedef struct vmem vmem_t;

/**
 * Gives an arena a span, for example vmem_alloc().
 * @source: as given to vmem_create().
 * @size: a multiple of the importing arena's quantum, and of the source's if that is an arena.
 * @vmflag: of the allocation, cut to VM_KMFLAGS without VM_PANIC.
 * Returns NULL; or exactly @size bytes that the arena does not have yet, from a multiple of its quantum on, else the process
 * ends. May use any arena, malloc and own locks. Must not unwind. Threads: called by several at once.
 */
typedef void* vmem_alloc_t(vmem_t* source, size_t size, int vmflag);
/** Takes back a whole span of vmem_alloc_t, for example vmem_free(). Other rules as vmem_alloc_t. */
typedef void vmem_free_t(vmem_t* source, void* addr, size_t size);

/**
 * Makes an arena. [VMEM]
 * @name: for messages and debuggers; copied, at most 31 bytes.
 * @base, @size: the first span, as for vmem_add(); NULL and 0: none.
 * @quantum: a power of two, the unit of spans and pieces; sizes are rounded up to it.
 * @afunc: imports a span when no piece fits; NULL: nothing is imported.
 * @ffunc: takes an imported span back when all of it is free; NULL: it stays.
 * @source: first argument of both; an arena must outlive this one. Its quantum may be smaller if @afunc is vmem_alloc().
 * @qcache_max: quantum caches keep up to 16 freed pieces of each size up to this and up to 16 quanta, for vmem_alloc()
 *          without a search. They count as allocated until vmem_destroy() or a request that would fail. 0: none.
 * @vmflag: VM_PANIC or VM_NOSLEEP.
 * Returns the arena; or NULL and errno EINVAL (@name is NULL, @quantum is no power of two, vmem_add() would refuse the span) or
 * ENOMEM. The caller destroys it. Cost: a lock, proportional to arenas; a page of memory, reused by later arenas.
 */
vmem_t* vmem_create(const char* name, void* base, size_t size, size_t quantum, vmem_alloc_t* afunc, vmem_free_t* ffunc,
                    vmem_t* source, size_t qcache_max, int vmflag);

/**
 * Ends an arena that no other thread uses, and frees its quantum caches. If pieces are still allocated, one line on standard
 * error tells how many bytes, and their imported spans are not given back. If the arena is another one's source, a line names
 * both and the process ends. Cost: proportional to its pieces, and to arenas. [VMEM]
 */
void vmem_destroy(vmem_t* vmp);

/**
 * Adds a span. [VMEM] It stays the caller's: no function frees it. Adjacent spans are not joined; no piece spans two.
 * @addr, @size: multiples of the quantum, not 0; @addr + @size < 2^64.
 * Returns @addr; or NULL and errno EINVAL (no such range, or an overlap with the arena) or ENOMEM. Cost: a lock, logarithmic in
 * spans.
 */
void* vmem_add(vmem_t* vmp, void* addr, size_t size, int vmflag);

/**
 * A piece of @size bytes, rounded up to the quantum, at a multiple of it. [VMEM] If none is free, the arena imports a span; if
 * that fails, it empties its quantum caches and tries both again. Contents are undefined.
 * @vmflag: policies do not apply to quantum caches.
 * Returns the piece, for vmem_free() with the same @size; or NULL and errno ENOMEM. @size 0: NULL, errno unchanged.
 * Cost: a lock and constant time by instant fit or from a quantum cache; afunc.
 */
void* vmem_alloc(vmem_t* vmp, size_t size, int vmflag);

/**
 * A piece with constraints; never from a quantum cache. [VMEM] A span is imported only without @nocross, @minaddr and @maxaddr.
 * If afunc is not vmem_alloc(), a larger @align imports more; the rest is free.
 * @size: as for vmem_alloc().
 * @align: a power of two, at least the quantum; 0: the quantum.
 * @phase: below @align, a multiple of the quantum: distance of the piece from a multiple of @align.
 * @nocross: 0; or a power of two, at least @align and @phase + @size: no multiple of it lies inside the piece.
 * @minaddr, @maxaddr: the piece lies within [@minaddr, @maxaddr); NULL: no limit.
 * Returns the piece, for vmem_xfree() with the same @size; or NULL and errno EINVAL (constraints as above are not met, or
 * contradict each other) or ENOMEM (no free piece meets them). @size 0: NULL, errno unchanged.
 * Cost: as vmem_alloc(); with @nocross, @minaddr or @maxaddr a search of free pieces of the size and above.
 */
void* vmem_xalloc(vmem_t* vmp, size_t size, size_t align, size_t phase, size_t nocross, void* minaddr, void* maxaddr,
                  int vmflag);

/**
 * Frees a piece into a quantum cache or the arena, which joins it with free neighbours and gives wholly free imported spans
 * back. [VMEM]
 * @addr, @size: as allocated, else the process ends. NULL and 0: no effect.
 * errno: only ffunc touches it. Cost: a lock and constant time; ffunc.
 */
void vmem_free(vmem_t* vmp, void* addr, size_t size);

/** As vmem_free(), for pieces of vmem_xalloc() and others, past the quantum caches. */
void vmem_xfree(vmem_t* vmp, void* addr, size_t size);

/** 1 if one span of the arena, allocated or free, has [@addr, @addr + @size); else 0. Cost: a lock, logarithmic in spans. */
int vmem_contains(vmem_t* vmp, void* addr, size_t size);

/**
 * Calls @func for pieces and spans in address order, a span before its pieces, the rotor last with size 0.
 * @typemask: VMEM_ALLOC, VMEM_FREE, VMEM_SPAN, VMEM_ROTOR, VMEM_REENTRANT.
 * @func: gets @arg, address and size; of an allocated piece the size for vmem_free(), in quantum caches whole quanta. Must not
 *          unwind.
 * Without VMEM_REENTRANT the arena is locked: @func sees one state and must not use the arena, or it waits for itself. With it
 * @func and others may use the arena: what exists all the time is reported once; what changes meanwhile perhaps not.
 * Cost: proportional to pieces and spans of all types.
 */
void vmem_walk(vmem_t* vmp, int typemask, void (*func)(void* arg, void* addr, size_t size), void* arg);

/** Bytes in whole quanta: VMEM_ALLOC: allocated, quantum caches included; VMEM_FREE: free; both: all spans. Cost: a lock. */
size_t vmem_size(vmem_t* vmp, int typemask);

/**
 * The process's memory: an arena of readable and writable pages, undefined in content. It maps spans of at least 1 MiB and
 * unmaps wholly free ones. Quantum: a page. Do not destroy it.
 * @allocp, @freep: unless NULL, set to vmem_alloc and vmem_free, to import from it.
 * Returns the arena, always the same; or NULL and errno ENOMEM. Cost: a load after the first time.
 */
vmem_t* vmem_heap_arena(vmem_alloc_t** allocp, vmem_free_t** freep);

#ifdef __cplusplus
}
#endif
#endif
