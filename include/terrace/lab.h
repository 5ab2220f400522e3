/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Local allocation buffers (LABs) for the young space of a moving collector. Each level is optional, and takes buffers from
 * the next:
 *
 *     thread (TLAB)  <-  core (CLAB)  <-  processor (PLAB)  <-  NUMA node  <-  the runtime's source()
 *
 * From [HAB], Kirsch, Payer, Roeck: Hierarchical PLABs, CLABs, TLABs in Hotspot; and [MP-RCS], Garthwaite, Dice, White:
 * Supporting Per-Processor Local-Allocation Buffers Using Lightweight User-Level Preemption Notification, VEE 2005.
 * docs/guide/lab.md explains use, counters and unloading, docs/theory/85-lab.md the design. lab_emit.h serves compilers.
 *
 * Memory is never freed: at a safepoint the runtime calls terrace_lab_retire_all(), collects, and calls
 * terrace_lab_collected().
 *
 * All functions, unless said otherwise. Sizes are bytes; arguments are not checked; errno is not touched. Since 0.1.
 * Threads: safe, attached or not; one thread at a time uses a struct terrace_lab_thread. Functions block only on short internal
 * locks and in the runtime's functions. Signals: a handler must not use a heap or thread that it may have interrupted.
 * fork: at a safepoint; the child may use the heap. vfork: not usable in the child.
 */
#ifndef TERRACE_LAB_H
#define TERRACE_LAB_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Counts incompatible changes of this file and lab_emit.h. */
#define TERRACE_LAB_ABI 2

enum terrace_lab_level {
  TERRACE_LAB_THREAD = 0,
  TERRACE_LAB_CORE = 1,      /* with all its hardware threads; TERRACE_LAB_RESTARTABLE: a slot of cs.h */
  TERRACE_LAB_PROCESSOR = 2, /* a last-level cache */
  TERRACE_LAB_NODE = 3,
  TERRACE_LAB_LEVELS = 4
};

/* How threads share buffers. */
enum terrace_lab_sync {
  TERRACE_LAB_CAS = 0,        /* compare-and-swap: [HAB] Listings 1 and 2 */
  TERRACE_LAB_RESTARTABLE = 1 /* critical sections: [MP-RCS]; core level only */
};

enum terrace_lab_sizing {
  TERRACE_LAB_FIXED = 0,   /* always `size` */
  TERRACE_LAB_GROWING = 1, /* HotSpot's: average bytes per collection / target refills */
  TERRACE_LAB_DOUBLING = 2 /* [MP-RCS]: doubled by refills, halved by collections */
};

/* Multiples of the alignment; min_size <= size <= max_size; 2 * min_fill <= min_size if min_fill > alignment. */
struct terrace_lab_level_config {
  size_t size;     /* of the first buffers; 0: no such level */
  size_t min_size; /* of a policy, and of a range accepted as a buffer; 0: size / 8 */
  size_t max_size; /* of a policy; larger requests skip the level; 0: 64 * size. TERRACE_LAB_FIXED: size */
  int sync;        /* enum terrace_lab_sync */
  int sizing;      /* enum terrace_lab_sizing */
};

/* Where objects come from first: [MP-RCS] 5.2. */
enum terrace_lab_association {
  TERRACE_LAB_BY_THREAD = 0,
  TERRACE_LAB_BY_CORE = 1, /* the thread level stays empty */
  TERRACE_LAB_FLIP = 2,    /* by thread at first; each collection decides anew, by the article's rule */
  TERRACE_LAB_AUTO = 3     /* by core while TLABs leave more than a twentieth of the space unused; needs young_bytes */
};

struct terrace_lab_config {
  unsigned abi; /* TERRACE_LAB_ABI; always the first member */
  struct terrace_lab_level_config levels[TERRACE_LAB_LEVELS];
  int association;           /* enum terrace_lab_association */
  size_t alignment;          /* of objects, ranges and buffers; a power of two, 8 to 4096 */
  size_t min_fill;           /* shortest range for fill(), a multiple of alignment; 0: alignment */
  size_t boundary;           /* ranges are not joined at its multiples; a power of two >= alignment; 0: none */
  size_t young_bytes;        /* size of the space; policies and permilles need it; 0: unknown */
  unsigned stop_permille;    /* refills stop below this part of the space; needs available(); 0: never */
  unsigned buffers_permille; /* largest part of the space in all buffers of a shared level; 0: no limit */

  /* The runtime's functions, called concurrently by allocating threads. They must not call the engine, wait for a safepoint, or
     unwind. */
  void* self; /* their first argument */
  /* Required. Returns *actual bytes: `desired` if there are as many, at least `min`. Start and *actual are aligned; addresses
     are below 2^63, and reused only after a safepoint. `node`: index in /sys/devices/system/node/online. NULL: exhausted, or
     only a wait helps (terrace_lab_install()). Adjacent ranges are joined. */
  void* (*source)(void* self, unsigned node, size_t min, size_t desired, size_t* actual);
  /* Approximate bytes left in source(); may be NULL without stop_permille. */
  size_t (*available)(void* self);
  /* Makes [start, end), at least min_fill bytes, a dead object. NULL: tails stay as they are. */
  void (*fill)(void* self, void* start, void* end);
};

struct terrace_lab_heap; /* in the runtime's memory */

/* Never reset. docs/guide/lab.md defines each. */
struct terrace_lab_counts {
  uint64_t labs;
  uint64_t lab_bytes;
  uint64_t short_labs;
  uint64_t foreign;
  uint64_t busy;
  uint64_t neighbours;
  uint64_t transactions;
  uint64_t failed;
  uint64_t invalid;
  uint64_t sidelined;
  uint64_t sidelined_bytes;
  uint64_t drained;
  uint64_t drained_bytes;
  uint64_t unused_sidelined;
  uint64_t unused_sidelined_bytes;
  uint64_t partial;
  uint64_t wasted_bytes;
  uint64_t retired_bytes;
};

struct terrace_lab_counters {
  struct terrace_lab_counts level[TERRACE_LAB_LEVELS];
  uint64_t direct;
  uint64_t direct_bytes;
  uint64_t padding_bytes;
  uint64_t collections;
  uint64_t flips;
  uint64_t by_core;
};

/**
 * An allocating thread or fibre. The runtime embeds it, aligned to 8, and does not move it while attached. The engine writes it
 * in calls that name it and at safepoints. The thread's compiled code may advance `top`.
 */
struct terrace_lab_thread {
  char* top; /* next free byte of the TLAB, at offset 0; NULL, like `end`, without one */
  char* end;
  uint64_t active; /* emitted code on a core's buffer stores 1 */
  uint64_t of_the_engine[37];
};

/**
 * The memory for terrace_lab_init(): about 40 KiB, and 256 bytes per shared buffer. The first call in a process reads
 * TERRACE_RUNG (docs/guide/options.md). Returns 0 with errno EINVAL when @config breaks a rule above or its association lacks a
 * core level. Cost: reads one or two files of /sys per cpu.
 */
size_t terrace_lab_heap_bytes(const struct terrace_lab_config* config);

/**
 * Makes a heap, without calling the runtime. When no thread uses it, the runtime may unmap @memory.
 * @memory: terrace_lab_heap_bytes() zeroed bytes, aligned to 128.
 * @config: copied.
 * Returns the heap, or NULL with errno EINVAL. Cost: as above.
 */
struct terrace_lab_heap* terrace_lab_init(void* memory, const struct terrace_lab_config* config);

/**
 * Allocation by @thread begins and ends. Both wait for terrace_lab_retire_all(), terrace_lab_collected() and
 * terrace_lab_walk(). Attaching sets all of @thread. Detaching fills the tail of its TLAB, keeps its counts, and calls
 * terrace_lab_forget_sections() for the caller, who may also detach another, stopped thread. Cost: a lock.
 */
void terrace_lab_attach(struct terrace_lab_heap* heap, struct terrace_lab_thread* thread);
void terrace_lab_detach(struct terrace_lab_thread* thread);

/**
 * Clears the caller's rseq_cs and ends its transaction of cs.h. Before the engine or emitted code is unloaded, every other
 * thread that allocated calls this or detaches itself (glibc from 2.35 on). Signals: safe. Cost: two
 * loads, a store.
 */
void terrace_lab_forget_sections(void);

/*
 * Objects, for attached threads. @size is positive and a multiple of the alignment. The functions return an aligned object with
 * the source's contents. They return NULL, and change nothing, when neither an eligible buffer nor the source has room: collect
 * and try again.
 */

/**
 * Called when the TLAB lacks room. The object comes from a level above if the TLAB has over 1/64 left (HotSpot's waste limit),
 * the object is too large, the space is about to end, or the association is by core; else from a new TLAB. Cost: a refill, at
 * worst one source() and one fill() per level.
 */
void* terrace_lab_allocate_slow(struct terrace_lab_thread* thread, size_t size);

/** Allocates in line. Cost: two loads, an addition, a comparison, a store. */
static inline void* terrace_lab_allocate(struct terrace_lab_thread* thread, size_t size) {
  char* const top = thread->top;
  if (size <= (size_t)(thread->end - top)) {
    thread->top = top + size;
    return top;
  }
  return terrace_lab_allocate_slow(thread, size);
}

/**
 * Allocates from the buffer of @level, or of the next level that exists and has room.
 * @level: TERRACE_LAB_CORE or above; TERRACE_LAB_LEVELS: the source.
 * Cost: a call and a bump sequence (TERRACE_LAB_RESTARTABLE), or a cpu number and a compare-and-swap; perhaps a refill.
 */
void* terrace_lab_allocate_at(struct terrace_lab_thread* thread, int level, size_t size);

/**
 * Allocates at a multiple of @alignment, a power of two up to 4096, and fills the gaps. It needs room for size + alignment + 2
 * * min_fill bytes. Cost: a request of that size, and up to two fill().
 */
void* terrace_lab_allocate_aligned(struct terrace_lab_thread* thread, size_t size, size_t alignment);

/**
 * Bytes of @thread's objects and padding since it was attached, without objects that terrace_lab_allocate_core() or emitted
 * code took from a core's buffer (docs/adr/0022). Threads: @thread's own, or at a safepoint. Cost: three loads.
 */
uint64_t terrace_lab_allocated_bytes(const struct terrace_lab_thread* thread);

/** A shorter terrace_lab_allocate_at() for the core, for compiled code. @size: also below 2^62. */
void* terrace_lab_allocate_core(struct terrace_lab_thread* thread, size_t size);

/* Ranges, for runtimes with their own TLABs. The caller owns a range and makes its rest walkable. */

/**
 * Takes a range from @level as terrace_lab_allocate_at(), at the same cost. Never waits for a safepoint.
 * @min, @desired: 0 < min <= desired, multiples of the alignment.
 * @actual: the range's size, from @min to @desired; what is left in a buffer may be a short range.
 * Returns the range, or NULL as above.
 */
void* terrace_lab_take(struct terrace_lab_heap* heap, int level, size_t min, size_t desired, size_t* actual);

/** Counts a request that the runtime served itself. Cost: two atomic additions. */
void terrace_lab_count_direct(struct terrace_lab_heap* heap, size_t bytes);

/**
 * Adds a range that source() could get only by waiting.
 * @start, @bytes: as from source(), at least min_size of @level.
 * If the caller's buffer has less than min_size left, its rest is filled and the range replaces it. Else, or during a refill,
 * the range is put aside for the next refill.
 * Returns 0; or -1, and the range stays the caller's. errno EBUSY: 64 ranges are aside, or buffers_permille excludes the level.
 * EINVAL: @level is missing or the thread's. Cost: a refill without source().
 */
int terrace_lab_install(struct terrace_lab_heap* heap, int level, void* start, size_t bytes);

/**
 * Puts the rests of the cores' buffers aside for other cores, before a collection. Skips buffers during their refill.
 * Returns the bytes put aside; 0: none, TERRACE_LAB_CAS (requests take from neighbours), or no membarrier. Threads: one at a
 * time. Cost: a membarrier, microseconds, more while threads commit; without restartable sequences a lock per slot.
 */
size_t terrace_lab_drain(struct terrace_lab_heap* heap);

/**
 * The largest range that terrace_lab_take() could get from buffers now.
 * @enough: ends the search, which goes from the own buffer to the neighbours and up.
 * Cost: terrace_lab_index() and two loads; two per further buffer.
 */
size_t terrace_lab_max_take(const struct terrace_lab_heap* heap, int level, size_t enough);

/**
 * Unused bytes in @level's buffers and aside. Exact at a safepoint, the thread level only there. 0: no such level. Cost: a
 * lock, all buffers.
 */
size_t terrace_lab_free_bytes(struct terrace_lab_heap* heap, int level);

/*
 * Safepoints: no other thread allocates, and compiled code loads `top` and `end` anew. Threads: one at a time. Cost: threads
 * and buffers.
 */

/**
 * Gives up all buffers and fills their tails. A collection may follow; the last call before it decides the association. Returns
 * 0; or -1 with errno EBUSY and no effect: a thread refills or drains a buffer.
 */
int terrace_lab_retire_all(struct terrace_lab_heap* heap);

/** Tells that source() has memory again; adapts sizes and association. @young_bytes: size of the space; 0: unchanged. */
void terrace_lab_collected(struct terrace_lab_heap* heap, size_t young_bytes);

/**
 * Reports the runtime's own TLABs for TERRACE_LAB_FLIP and TERRACE_LAB_AUTO, which else stay by thread. Calls before
 * terrace_lab_collected() add up.
 * @threads: allocated since the last collection.
 * @unused_bytes: retired in their TLABs, and in those of threads that ended since then; 0 while by core.
 * @largest_bytes: the largest TLAB size now.
 */
void terrace_lab_report_tlabs(struct terrace_lab_heap* heap, unsigned threads, uint64_t unused_bytes, size_t largest_bytes);

/** Gets an unused part of @level. Must not call the engine. */
typedef void terrace_lab_visitor(void* argument, int level, void* start, void* end);
/** Visits the unused parts of all buffers, and ranges aside. Changes nothing. */
void terrace_lab_walk(struct terrace_lab_heap* heap, terrace_lab_visitor* visit, void* argument);

/* The rest needs no safepoint. */

/** Sums over buffers and all threads ever attached; consistent only at a safepoint. Cost: a lock, all buffers. */
void terrace_lab_read_counters(struct terrace_lab_heap* heap, struct terrace_lab_counters* out);

/**
 * The next buffer's size: of @thread (NULL: as configured), or of @level where the caller runs. 0: no such level, or excluded.
 * Ends a transaction of cs.h.
 */
size_t terrace_lab_size(const struct terrace_lab_heap* heap, const struct terrace_lab_thread* thread, int level);

/** TERRACE_LAB_BY_THREAD or TERRACE_LAB_BY_CORE. Changes only in terrace_lab_collected(); not during it. */
int terrace_lab_associated(const struct terrace_lab_heap* heap);

#ifdef __cplusplus
}
#endif
#endif
