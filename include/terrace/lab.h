/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Local allocation buffers (LABs) for garbage-collected heaps. A runtime brings its young space; the engine hands out pieces of
 * it, level by level:
 *
 *     thread (TLAB)  ->  core (CLAB)  ->  processor (PLAB)  ->  NUMA node  ->  the runtime's source
 *
 * Each level is there or not, with a size, a sizing policy and a way of synchronisation chosen at run time. From
 *   [HAB]    C. Kirsch, H. Payer, H. Roeck: Hierarchical PLABs, CLABs, TLABs in Hotspot
 *   [MP-RCS] A. Garthwaite, D. Dice, D. White: Supporting Per-Processor Local-Allocation Buffers Using Lightweight User-Level
 *            Preemption Notification, VEE 2005. What is called a per-processor LAB there is the core level here.
 *
 * Memory is only handed out, never freed: the collector takes the whole space back. So between two collections the runtime
 * calls the allocation functions from any thread; for a collection it stops its threads and calls, in this order,
 *
 *     terrace_lab_retire_all()      every buffer is given up, its tail filled: the space can be walked from its start to its
 * top (the collection itself) terrace_lab_collected()       the space is empty again: sizes are adapted, the association may
 * flip
 *
 * The engine allocates nothing: the runtime brings the memory for its state, too. No libc but pthread-free system calls at
 * terrace_lab_init(); usable from code that a compiler emits, see terrace_lab_read_layout().
 *
 * Common to all functions: errno is not touched unless said. Signals: not safe, except that a handler may interrupt any of
 * them. fork: the child may use a heap if no other thread of the parent was inside; a runtime that forks does so at a
 * safepoint. Since 0.2.
 */
#ifndef TERRACE_LAB_H
#define TERRACE_LAB_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum terrace_lab_level {
  TERRACE_LAB_THREAD = 0,
  TERRACE_LAB_CORE = 1,
  TERRACE_LAB_PROCESSOR = 2, /* a last-level cache */
  TERRACE_LAB_NODE = 3,
  TERRACE_LAB_LEVELS = 4
};

/* How threads share a buffer of the levels above the thread. */
enum terrace_lab_sync {
  TERRACE_LAB_CAS = 0,        /* [HAB] Listings 1 and 2: the buffer of the cpu that the thread was on, by compare-and-swap */
  TERRACE_LAB_RESTARTABLE = 1 /* [MP-RCS]: critical sections, no atomic instruction. Core level only */
};

enum terrace_lab_sizing {
  TERRACE_LAB_FIXED = 0,   /* always `size` */
  TERRACE_LAB_GROWING = 1, /* HotSpot's: the share of the space that was allocated through the buffer, in 50 refills */
  TERRACE_LAB_DOUBLING = 2 /* [MP-RCS] default: twice as large at each refill, half as large at each collection, and never more
                              than a fair share of the space */
};

struct terrace_lab_level_config {
  size_t size;     /* bytes of a buffer, at first; 0: there is no such level */
  size_t min_size; /* the least that is taken from the level above in place of a buffer; 0: 1/8 of size */
  size_t max_size; /* policies stay below; 0: 64 times size. Not used with TERRACE_LAB_FIXED */
  int sync;        /* enum terrace_lab_sync; not used on the thread level */
  int sizing;      /* enum terrace_lab_sizing */
};

/* Whom the first buffer of an allocation belongs to. [MP-RCS] 5.2 */
enum terrace_lab_association {
  TERRACE_LAB_BY_THREAD = 0, /* objects come from the thread's buffer */
  TERRACE_LAB_BY_CORE = 1,   /* objects come from the core's buffer, the thread level stays empty */
  TERRACE_LAB_FLIP = 2       /* the one or the other, decided at each collection; begins by thread */
};

struct terrace_lab_config {
  struct terrace_lab_level_config levels[TERRACE_LAB_LEVELS];
  int association;
  size_t alignment;       /* of every object and buffer, a power of two from 8 to 4096 */
  size_t young_bytes;     /* size of the space: policies need it. 0: not known; then only TERRACE_LAB_FIXED is possible */
  unsigned stop_permille; /* when less than this part of the space is left, no buffers are handed out any more, objects only.
                             0: never. Needs `available` */

  void* self; /* given to the functions below */
  /* At least `min` bytes of the space, `desired` if there are as many; *actual says how many. All are multiples of `alignment`.
     NULL: the space is exhausted. Called by several threads at once. */
  void* (*source)(void* self, size_t min, size_t desired, size_t* actual);
  /* Bytes that source() can still hand out, about. May be NULL. */
  size_t (*available)(void* self);
  /* Makes [start, end) walkable: a dead object. Called by several threads at once, for ranges that nobody else knows. May be
     NULL. */
  void (*fill)(void* self, void* start, void* end);
};

struct terrace_lab_heap; /* in memory that the runtime brings */

/* What happened on one level, since terrace_lab_init(). "LABs" are buffers of that level; on the core level and above "objects"
   are all requests, those of the level below included. */
struct terrace_lab_counts {
  uint64_t labs;         /* buffers taken from above */
  uint64_t lab_bytes;    /* in them */
  uint64_t short_labs;   /* of these, smaller than wanted: the last of a buffer or of the space */
  uint64_t foreign;      /* requests served by the buffer of a core, processor or node that the thread was not on afterwards */
  uint64_t busy;         /* buffers found while somebody refilled them */
  uint64_t neighbours;   /* requests served by another's buffer since one's own was busy or could not be refilled */
  uint64_t transactions; /* refills: transactions that installed a buffer, */
  uint64_t failed;       /* that were interrupted, */
  uint64_t invalid;      /* and that could not be reopened */
  uint64_t sidelined;    /* buffers put aside by these */
  uint64_t sidelined_bytes;
  uint64_t unused_sidelined; /* of these, put aside until a collection */
  uint64_t unused_sidelined_bytes;
  uint64_t partial;       /* buffers given up with a tail, */
  uint64_t wasted_bytes;  /* the sum of tails, */
  uint64_t retired_bytes; /* and of these at collections */
};

struct terrace_lab_counters {
  struct terrace_lab_counts level[TERRACE_LAB_LEVELS];
  uint64_t direct; /* requests that went past all levels, to the source */
  uint64_t direct_bytes;
  uint64_t collections;
  uint64_t flips;
  uint64_t by_core; /* collections after which objects came from the core's buffer */
};

/**
 * One allocating thread, or whatever the runtime schedules in its place (a fibre): the engine does not look at the operating
 * system's thread. The runtime embeds it where its compiled code finds it; the engine writes it only in calls that name it, and
 * at safepoints. `top` and `end` are at offsets 0 and 8 for ever.
 */
struct terrace_lab_thread {
  char* top; /* next free byte of the TLAB; both NULL when there is none */
  char* end;
  uint64_t of_the_engine[30];
};

/**
 * terrace_lab_heap_bytes - how much memory terrace_lab_init() needs.
 * 0 and errno EINVAL when the configuration is none: a size that is no multiple of the alignment, minimum > size > maximum, a
 * policy without young_bytes, restartable synchronisation above or below the core, association by core without a core level.
 * Threads: safe.
 */
size_t terrace_lab_heap_bytes(const struct terrace_lab_config* config);

/**
 * terrace_lab_init - makes a heap.
 * @memory: terrace_lab_heap_bytes() zeroed bytes, aligned to 128, the runtime's; to be given back after the last use.
 * NULL and errno EINVAL as above. The configuration is copied. Cost: some file reads under /sys once per process.
 */
struct terrace_lab_heap* terrace_lab_init(void* memory, const struct terrace_lab_config* config);

/**
 * terrace_lab_attach, terrace_lab_detach - a thread begins and ends to allocate.
 * Attaching sets all of @thread. Detaching gives up its TLAB; then its memory is the runtime's again. Threads: safe; a @thread
 * is used by one thread at a time. Cost: a lock.
 */
void terrace_lab_attach(struct terrace_lab_heap* heap, struct terrace_lab_thread* thread);
void terrace_lab_detach(struct terrace_lab_thread* thread);

/**
 * terrace_lab_allocate_slow - an object of @size bytes, a multiple of the alignment, when the TLAB has no room.
 * NULL: neither a buffer nor the source has as much; the runtime collects and tries again. The memory is as the source gave it.
 */
void* terrace_lab_allocate_slow(struct terrace_lab_thread* thread, size_t size);

/** terrace_lab_allocate - an object of @size bytes, a multiple of the alignment. Cost: an addition and a comparison. */
static inline void* terrace_lab_allocate(struct terrace_lab_thread* thread, size_t size) {
  char* const top = thread->top;
  if (size <= (size_t)(thread->end - top)) {
    thread->top = top + size;
    return top;
  }
  return terrace_lab_allocate_slow(thread, size);
}

/**
 * terrace_lab_allocate_at - an object of @size bytes from the buffer of @level (core or above; the next level that exists).
 * As terrace_lab_allocate_slow(). On a core level with critical sections no atomic instruction is executed unless the buffer is
 * refilled.
 */
void* terrace_lab_allocate_at(struct terrace_lab_thread* thread, int level, size_t size);

/**
 * terrace_lab_allocate_core - as terrace_lab_allocate_at(thread, TERRACE_LAB_CORE, size), without detours. What is allocated
 * while the association is by core ends here.
 */
void* terrace_lab_allocate_core(struct terrace_lab_thread* thread, size_t size);

/**
 * terrace_lab_retire_all - gives up all buffers of all levels, and fills their tails and what was sidelined.
 * Requires a safepoint: no other thread is in an allocation function, and those that are stopped in compiled code load `top`
 * and `end` anew.
 */
void terrace_lab_retire_all(struct terrace_lab_heap* heap);

/**
 * terrace_lab_collected - the space has been emptied; adapts sizes and association. Requires the same safepoint.
 * @young_bytes: the size that the space has now; 0: as before.
 */
void terrace_lab_collected(struct terrace_lab_heap* heap, size_t young_bytes);

/** Called for each buffer: its level, and the part that was not handed out yet. */
typedef void terrace_lab_visitor(void* argument, int level, void* start, void* end);
/** terrace_lab_walk - visits all buffers that have a tail, sidelined ones included. Requires a safepoint; changes nothing. */
void terrace_lab_walk(struct terrace_lab_heap* heap, terrace_lab_visitor* visit, void* argument);

/** terrace_lab_read_counters - sums over all threads. Exact at a safepoint; otherwise each number was true lately. Threads:
 * safe. */
void terrace_lab_read_counters(struct terrace_lab_heap* heap, struct terrace_lab_counters* out);

/** terrace_lab_size - the size that the next buffer of @thread (may be NULL above the thread level) at @level will have. */
size_t terrace_lab_size(const struct terrace_lab_heap* heap, const struct terrace_lab_thread* thread, int level);

/** terrace_lab_associated - TERRACE_LAB_BY_THREAD or TERRACE_LAB_BY_CORE: whose buffer is used until the next collection. */
int terrace_lab_associated(const struct terrace_lab_heap* heap);

/* For code that a compiler emits: where the buffers of a level lie. Buffer i: top (8 bytes) at base + i * stride, end behind
 * it. */
struct terrace_lab_layout {
  char* base;
  size_t stride;
  unsigned count;
  int sync; /* restartable: i is the slot that terrace_cs_begin() of terrace/cs.h returns; cas: see terrace_lab_index() */
};
/** terrace_lab_read_layout - 0, or -1 and errno EINVAL: there is no such level, or it is the thread's. */
int terrace_lab_read_layout(const struct terrace_lab_heap* heap, int level, struct terrace_lab_layout* out);
/** terrace_lab_index - the buffer of @level that belongs to where the caller runs at this moment. */
unsigned terrace_lab_index(const struct terrace_lab_heap* heap, int level);

/* The value of `top` while a buffer is being refilled, PLAB_REFILL_IN_PROGRESS of [HAB]: with any size added it is above `end`. */
#define TERRACE_LAB_REFILLING (UINT64_C(1) << 63)

#ifdef __cplusplus
}
#endif
#endif
