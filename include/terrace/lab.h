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
 *            Preemption Notification, VEE 2005. Their per-processor LAB is the core level here.
 * docs/guide/lab.md explains how to embed it, docs/theory/85-lab.md how it works. What emitted code needs is in lab_emit.h.
 *
 * A runtime that keeps TLABs of its own leaves out the thread level and takes ranges from the level above (terrace_lab_take()).
 *
 * Memory is only handed out, never freed: the collector takes it back. Between two collections the runtime calls the allocation
 * functions from any attached thread. For a collection it stops its threads (a safepoint) and calls, in this order,
 *
 *     terrace_lab_retire_all()   every buffer is given up and its tail filled: what the source has handed out can be walked
 *     the collection itself
 *     terrace_lab_collected()    the source has memory again; sizes are adapted, the association may flip
 *
 * The engine allocates nothing: the runtime brings the memory for its state, too. It needs libc and nothing of C++, calls
 * neither malloc nor pthread, and starts no thread. The first use in a process decides by which means threads work on the
 * buffers of cores (TERRACE_RUNG is read then; docs/guide/options.md).
 *
 * Common to all functions. Sizes are bytes. Arguments are not checked unless said. errno is touched only where said. Signals: a
 * handler may interrupt any of them, and must not call any for the same heap or thread. fork: the child may use a heap if no
 * other thread of the parent was in one of these functions, which at a safepoint is so. vfork: not usable in the child. No
 * function blocks but on its own short locks and on what the runtime's functions do. Since 0.1.
 *
 * Versions. TERRACE_LAB_ABI counts changes of this file and of lab_emit.h that a compiled caller would notice: a structure, a
 * function's arguments, a meaning. A configuration names the number that it was compiled with, and another one is refused.
 *
 * Unloading. The kernel reads the descriptor of a thread's last critical section when it next disturbs the thread, and ends the
 * process if it has vanished: link what the archive is in with -z nodelete. Where libc registers rseq (glibc from 2.35 on), it
 * may also be unloaded, and memory with emitted sections freed, after each other thread that has called an allocation function
 * has called terrace_lab_detach() or terrace_lab_forget_sections() since.
 */
#ifndef TERRACE_LAB_H
#define TERRACE_LAB_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TERRACE_LAB_ABI 2

enum terrace_lab_level {
  TERRACE_LAB_THREAD = 0, /* or whatever is attached */
  TERRACE_LAB_CORE = 1,   /* by compare-and-swap a core, with all its hardware threads; by critical sections a slot of cs.h */
  TERRACE_LAB_PROCESSOR = 2, /* a last-level cache */
  TERRACE_LAB_NODE = 3,
  TERRACE_LAB_LEVELS = 4
};

/* How threads share a buffer of the levels above the thread. */
enum terrace_lab_sync {
  TERRACE_LAB_CAS = 0,        /* [HAB] Listings 1 and 2: the buffer of the cpu that the thread was on, by compare-and-swap */
  TERRACE_LAB_RESTARTABLE = 1 /* [MP-RCS]: critical sections, no atomic instruction. Core level only; EINVAL elsewhere */
};

enum terrace_lab_sizing {
  TERRACE_LAB_FIXED = 0,   /* always `size` */
  TERRACE_LAB_GROWING = 1, /* HotSpot's: average bytes per collection through the buffer / target refills, which are 50 for a
                              TLAB and 16, 8, 4 for the levels above. `size` until the first collection */
  TERRACE_LAB_DOUBLING = 2 /* [MP-RCS] default: twice as large at each refill, half as large at each collection, and never more
                              than 1/4 of an even share of the space */
};

struct terrace_lab_level_config {
  size_t size;     /* of a buffer, at first; 0: there is no such level, and the other members are not looked at */
  size_t min_size; /* the least that is taken from the level above in place of a buffer, and the least that a policy comes to;
                      0: 1/8 of size */
  size_t max_size; /* the most that a policy comes to; larger requests go past the level; 0: 64 times size. Not used with
                      TERRACE_LAB_FIXED, where it is size */
  int sync;        /* enum terrace_lab_sync */
  int sizing;      /* enum terrace_lab_sizing */
};

/* Where objects are taken from first. [MP-RCS] 5.2 */
enum terrace_lab_association {
  TERRACE_LAB_BY_THREAD = 0, /* from the thread's buffer */
  TERRACE_LAB_BY_CORE = 1,   /* from the core's buffer; the thread level stays empty */
  TERRACE_LAB_FLIP = 2 /* begins by thread. A collection that finds more unused in the TLABs than cores times the largest TLAB
                          changes to by core; one that finds more unused in the cores' buffers than allocating threads times
                          the largest of these changes back. "Largest" is the size that the next one would have */
};

struct terrace_lab_config {
  unsigned abi; /* TERRACE_LAB_ABI; the first member for ever */
  struct terrace_lab_level_config levels[TERRACE_LAB_LEVELS];
  int association;
  /* Of every object, range, buffer and tail; a power of two from 8 to 4096. */
  size_t alignment;
  /* The shortest range that fill() can make a dead object of; a multiple of `alignment`, 0: the same. If it is more, each
     buffer keeps back its last min_fill bytes, so that no tail is ever shorter. */
  size_t min_fill;
  /* A power of two at whose multiples the regions of the space begin: ranges that meet there are not joined. So no object lies
     across two regions, if source() hands out no range that does. 0: none. */
  size_t boundary;
  /* Of the space, for policies and the permilles. 0: not known; then only TERRACE_LAB_FIXED, and no permille. */
  size_t young_bytes;
  /* When less than this part of the space is left, no buffer is refilled any more: objects come from what buffers have, then
     from the source. 0: never; else needs `available` and young_bytes. */
  unsigned stop_permille;
  /* All buffers of a level above the thread's, if full, are together at most this part of the space: sizes are cut down to
     that. A level whose buffers would be smaller than its min_size then is passed over. Looked at again in
     terrace_lab_collected(). 0: no such limit; else needs young_bytes. */
  unsigned buffers_permille;

  /* The runtime's functions. They are called by several threads at once, by any thread that allocates. They must not call
     functions of this file, must not wait for a safepoint, and must not unwind through the engine. */
  void* self; /* their first argument */
  /* At least `min` bytes of the space, `desired` if there are as many; *actual says how many. `node` is the NUMA node that the
     memory is for, by its place in /sys/devices/system/node/online, from 0 on; 0 on a machine of one. Start and *actual are
     multiples of `alignment`; addresses are below 2^63. NULL: the space is exhausted, or nothing can be had without a safepoint
     or a lock that may wait for one: see terrace_lab_install(). A range that begins where the buffer it is for ends is joined
     to it unless that is at a `boundary`, so an object may lie across two ranges that were handed out one after the other. No
     address is handed out twice without a safepoint in between. Must be given. */
  void* (*source)(void* self, unsigned node, size_t min, size_t desired, size_t* actual);
  /* Bytes that source() can still hand out, about. NULL if stop_permille is 0. */
  size_t (*available)(void* self);
  /* Makes [start, end), unused and of at least `min_fill` bytes, walkable: a dead object. NULL: tails stay as they are. */
  void (*fill)(void* self, void* start, void* end);
};

struct terrace_lab_heap; /* in memory that the runtime brings */

/* What happened on one level since terrace_lab_init(). A LAB is a buffer of that level. All numbers only grow. The names are
   those of [MP-RCS] table 2 and [HAB] tables I and II. */
struct terrace_lab_counts {
  uint64_t labs;                   /* taken from above */
  uint64_t lab_bytes;              /* in them */
  uint64_t short_labs;             /* of these, smaller than wanted: the last of a buffer or of the space */
  uint64_t foreign;                /* requests served by the buffer of a core, processor or node that the thread was not on
                                      afterwards; by compare-and-swap only */
  uint64_t busy;                   /* buffers that were met while somebody refilled them */
  uint64_t neighbours;             /* requests served by another's buffer, as one's own was busy or could not be refilled */
  uint64_t transactions;           /* refills that installed a LAB, of all levels but the thread's */
  uint64_t failed;                 /* critical sections that were seen to be interrupted during a refill */
  uint64_t invalid;                /* refills whose buffer had changed, or whose thread had moved, before they could install */
  uint64_t sidelined;              /* LABs put aside by these and by terrace_lab_install(), for the next refill */
  uint64_t sidelined_bytes;        /* in them */
  uint64_t drained;                /* buffers whose rest terrace_lab_drain() has put aside */
  uint64_t drained_bytes;          /* in these rests */
  uint64_t unused_sidelined;       /* of what was put aside, still there at a collection */
  uint64_t unused_sidelined_bytes; /* in them; not part of wasted_bytes */
  uint64_t partial;                /* LABs given up with a tail, */
  uint64_t wasted_bytes;           /* the sum of these tails, */
  uint64_t retired_bytes;          /* and the part of it that was given up at collections */
};

struct terrace_lab_counters {
  struct terrace_lab_counts level[TERRACE_LAB_LEVELS];
  uint64_t direct;        /* objects and ranges past all buffers: of the source itself, and of terrace_lab_count_direct() */
  uint64_t direct_bytes;  /* in them */
  uint64_t padding_bytes; /* filled before and behind objects of terrace_lab_allocate_aligned() */
  uint64_t collections;   /* calls of terrace_lab_collected() */
  uint64_t flips;         /* of these, changed the association */
  uint64_t by_core;       /* of these, left it by core */
};

/**
 * struct terrace_lab_thread - one allocating thread, or whatever the runtime schedules in its place (a fibre): the engine does
 * not look at the operating system's thread. The runtime embeds it, aligned to 8, where its compiled code finds it, and neither
 * moves nor copies it while it is attached. The engine writes it in calls that name it, and at safepoints. `top` and `end` are
 * at offsets 0 and 8 for ever; compiled code of the thread may advance `top` as terrace_lab_allocate() does.
 */
struct terrace_lab_thread {
  char* top; /* next free byte of the TLAB; both NULL when there is none */
  char* end;
  uint64_t active; /* at offset 16: emitted code that takes objects from a core's buffer itself stores 1 here */
  uint64_t of_the_engine[37];
};

/**
 * terrace_lab_heap_bytes - for terrace_lab_init(): bytes, some 40 KiB and 256 per buffer of a core or slot, LLC or node.
 * Returns 0 and errno EINVAL when the configuration is invalid: another abi; no source; an alignment that is no power of two
 * from 8 to 4096; a size or min_fill that is no multiple of it; min_size > size or size > max_size; min_size below twice
 * min_fill, if that is more than the alignment; a boundary that is no power of two or below the alignment; a policy or permille
 * without young_bytes, a permille above 1000, stop_permille without available(); an enumerator that does not exist; critical
 * sections elsewhere than on the core level; association by core, or flip, without a core level.
 * Threads: safe. Cost: some files are read under /sys, one or two per cpu.
 */
size_t terrace_lab_heap_bytes(const struct terrace_lab_config* config);

/**
 * terrace_lab_init - makes a heap.
 * @memory: terrace_lab_heap_bytes() zeroed bytes, aligned to 128. They are the engine's until the runtime stops using the heap;
 *          there is nothing to be closed: when all threads are detached, or will never call again, the memory may be unmapped.
 *          Best mapped, not from malloc: pages are touched where used.
 * @config: copied.
 * Returns the heap, or NULL and errno EINVAL as above. No function of the runtime is called.
 * Threads: safe for distinct @memory. Cost: as above.
 */
struct terrace_lab_heap* terrace_lab_init(void* memory, const struct terrace_lab_config* config);

/**
 * terrace_lab_attach, terrace_lab_detach - a thread begins and ends to allocate.
 * @thread: not attached. Attaching sets all of it; no buffer is taken yet. Detaching fills the tail of its TLAB and keeps what
 *          it has counted; then the memory of @thread is the runtime's again.
 * Detaching also does what terrace_lab_forget_sections() does, for the caller.
 * Threads: safe; a @thread is used by one at a time. Another one may detach it if it is stopped. Cost: a lock. Safepoints: wait
 * while another thread is in terrace_lab_retire_all(), _collected() or _walk().
 */
void terrace_lab_attach(struct terrace_lab_heap* heap, struct terrace_lab_thread* thread);
void terrace_lab_detach(struct terrace_lab_thread* thread);

/**
 * terrace_lab_forget_sections - the calling thread's rseq_cs names no descriptor any more, neither the engine's nor that of
 * emitted code: for threads that live on when one or the other is unloaded (above), for instance at a handshake with the
 * runtime, and for those whose struct terrace_lab_thread another one detaches. Ends an open transaction of terrace/cs.h.
 * Threads: safe, attached or not. Signals: safe. Cost: two loads, a store.
 */
void terrace_lab_forget_sections(void);

/**
 * terrace_lab_allocate_slow - an object when the TLAB has no room for it. From a new TLAB, or, when what is left in the old one
 * is too much to be given up (1/64 of a TLAB; HotSpot's waste limit), the object is too large or the space is about to end,
 * from the core's buffer and then the levels above. While the association is by core, from the core's buffer.
 * @size: > 0, a multiple of the alignment.
 * Returns the object, aligned, its memory as the source gave it; or NULL when neither a buffer it may use nor the source has
 * that many bytes. Then nothing has changed; the runtime collects and tries again.
 * Threads: safe for distinct @thread. Cost: a refill per TLAB; at worst a call of source() and one of fill() per level.
 */
void* terrace_lab_allocate_slow(struct terrace_lab_thread* thread, size_t size);

/**
 * terrace_lab_allocate - an object; the function that compiled code has in line.
 * @size: as above. Returns as above.
 * Threads: safe for distinct @thread. Cost: two loads, an addition, a comparison and a store; no atomic instruction.
 */
static inline void* terrace_lab_allocate(struct terrace_lab_thread* thread, size_t size) {
  char* const top = thread->top;
  if (size <= (size_t)(thread->end - top)) {
    thread->top = top + size;
    return top;
  }
  return terrace_lab_allocate_slow(thread, size);
}

/**
 * terrace_lab_allocate_at - an object past the thread level: from the buffer of @level, or the next level that exists and can.
 * @level: TERRACE_LAB_CORE or above; TERRACE_LAB_LEVELS is the source itself. @size: as above. Returns as above.
 * Threads: safe for distinct @thread. Cost: on a core level with critical sections a call and a bump sequence, no atomic
 * instruction unless the buffer is refilled; else a cpu number and a compare-and-swap.
 */
void* terrace_lab_allocate_at(struct terrace_lab_thread* thread, int level, size_t size);

/**
 * terrace_lab_allocate_aligned - an object at a multiple of @alignment: as terrace_lab_allocate(), for the few that need more.
 * @alignment: a power of two up to 4096. @size: as above.
 * The gap before it, and one behind it where it comes from no TLAB, are filled and count as padding_bytes.
 * Returns as above, also NULL where a range of size + alignment + 2 * min_fill bytes can not be had.
 * Threads: safe for distinct @thread. Cost: a function, as a request for that many bytes; up to two calls of fill().
 */
void* terrace_lab_allocate_aligned(struct terrace_lab_thread* thread, size_t size, size_t alignment);

/**
 * terrace_lab_allocated_bytes - of the objects, padding included, that @thread has been given since it was attached; those that
 * it took in line from its TLAB, too. Not of those of the core's buffer by terrace_lab_allocate_core() or emitted code: to
 * count them would cost a third of what they cost (docs/adr/0022); they are part of the core level's lab_bytes.
 * Threads: by the one that allocates with @thread, or at a safepoint. Cost: three loads.
 */
uint64_t terrace_lab_allocated_bytes(const struct terrace_lab_thread* thread);

/**
 * terrace_lab_allocate_core - as terrace_lab_allocate_at(thread, TERRACE_LAB_CORE, size), without detours: what compiled code
 * calls while the association is by core. Such objects count as allocated by the core's buffer, not by the thread.
 * @size: as above, and below 2^62: the way is too short to look (a runtime checks an array's length before it becomes a size).
 */
void* terrace_lab_allocate_core(struct terrace_lab_thread* thread, size_t size);

/*
 * Ranges, for runtimes that keep their own TLABs, and for heaps whose slow way the source can not go. A range is the caller's:
 * an object, a TLAB whose rest it makes walkable itself. No thread needs to be attached, and none is counted with.
 */

/**
 * terrace_lab_take - a range from the buffer of @level, or the next level that exists and can.
 * @level: TERRACE_LAB_CORE or above; TERRACE_LAB_LEVELS is the source itself.
 * @min, @desired: bytes, 0 < min <= desired, multiples of the alignment. Larger than a level's max_size: goes past it.
 * @actual: from min to desired; what a buffer has left is handed out as a short range.
 * Returns the range; or NULL, as terrace_lab_allocate_slow(), and *actual is as it was.
 * Threads: safe. Safepoints: never waits for one. Cost: as terrace_lab_allocate_at().
 */
void* terrace_lab_take(struct terrace_lab_heap* heap, int level, size_t min, size_t desired, size_t* actual);

/**
 * terrace_lab_count_direct - counts a request of @bytes that the runtime has served past the engine, by a slow way that
 * source() may not go, among those that came from the source itself.
 * Threads: safe, attached or not. Cost: two atomic additions.
 */
void terrace_lab_count_direct(struct terrace_lab_heap* heap, size_t bytes);

/**
 * terrace_lab_install - gives the engine a range that the runtime has got elsewhere: by a slow way that source() may not go, as
 * it waits for a lock or a safepoint. The caller cuts what it needs itself off the front, and installs the rest.
 * @start, @bytes: as a range of source(), at least min_size of @level.
 * The range goes into the buffer of @level where the caller runs, whose tail is filled, if that is shorter than min_size;
 * otherwise, or while somebody refills the buffer, it is put aside for the next refill of the level. So threads that go the
 * slow way at the same time do not fill what the first of them has installed.
 * Returns 0: it is the engine's. -1 and errno EBUSY: too many ranges are put aside (64), or the level is passed over
 * (buffers_permille); EINVAL: there is no such level, or it is the thread's. Then the range is the caller's as before.
 * Threads: safe. Cost: a refill without source().
 */
int terrace_lab_install(struct terrace_lab_heap* heap, int level, void* start, size_t bytes);

/**
 * terrace_lab_drain - takes what the buffers of all cores hold, and puts it aside for requests and refills from the core level:
 * for when source() has nothing left, before a collection. Only for a core level with critical sections, whose buffers nobody
 * else may take from while threads run; by compare-and-swap a request looks at the neighbours' buffers itself. Returns the
 * bytes that are to be had now; 0: nothing, the level is by compare-and-swap, or the kernel's membarrier is not to be had (a
 * sandbox). Buffers that somebody refills at that moment are left out. Threads: safe, also while others allocate; one at a
 * time. Cost: a membarrier, which interrupts all cpus that run the process, some microseconds; more if threads commit
 * meanwhile. Without restartable sequences a lock per slot.
 */
size_t terrace_lab_drain(struct terrace_lab_heap* heap);

/**
 * terrace_lab_max_take - the most bytes that one terrace_lab_take() at @level could get from buffers as they are at this
 * moment, without a refill: HotSpot's unsafe_max_tlab_alloc, less what the source has.
 * @enough: looks no further when it has found that much. The caller's own buffer is looked at first, then its neighbours',
 * then the levels above; 1 looks at the own one only, unless that is empty.
 * Threads: safe; somebody else may be faster. Cost: two loads and what terrace_lab_index() costs, then two loads per buffer.
 */
size_t terrace_lab_max_take(const struct terrace_lab_heap* heap, int level, size_t enough);

/**
 * terrace_lab_free_bytes - in all buffers of @level, and put aside: handed out by the source and not yet by that level.
 * Threads: safe; exact at a safepoint, not for the thread level otherwise. 0: no such level. Cost: a lock, and all buffers.
 */
size_t terrace_lab_free_bytes(struct terrace_lab_heap* heap, int level);

/**
 * terrace_lab_retire_all - gives up all buffers of all levels, and fills their tails and what was sidelined.
 * Requires a safepoint: no other thread is in a function that allocates, and those that are stopped in compiled code will load
 * `top` and `end` anew. Need not be followed by a collection: a runtime that only walks its space goes on allocating. The last
 * call before terrace_lab_collected() is the one that the association is decided by.
 * Returns 0; or -1 and errno EBUSY, and has done nothing: a buffer is being refilled or drained, so some thread is in a
 * function of the engine, and this is no safepoint. Threads: one at a time. Cost: proportional to threads and buffers; one call
 * of fill() per tail.
 */
int terrace_lab_retire_all(struct terrace_lab_heap* heap);

/**
 * terrace_lab_collected - tells that source() has memory again; adapts sizes and association.
 * @young_bytes: the size that the space has now, by which buffers_permille cuts sizes down or lets them be; 0: as before.
 * Requires the same safepoint, after terrace_lab_retire_all().
 * Threads: one at a time. Cost: proportional to threads and buffers.
 */
void terrace_lab_collected(struct terrace_lab_heap* heap, size_t young_bytes);

/**
 * terrace_lab_report_tlabs - what a runtime with TLABs of its own has found in them, for TERRACE_LAB_FLIP: the engine decides
 * in the next terrace_lab_collected() as if they were its own. Without thread level and without this, flip stays by thread.
 * @threads: that have allocated since the last collection, from whatever buffer.
 * @unused_bytes: in their TLABs when these were retired for this collection; 0 while the association is by core.
 * @largest_bytes: the largest size that one of their TLABs has now.
 * Reports before one collection add up. [MP-RCS] 5.2. Requires the same safepoint. Threads: one at a time. Cost: a lock.
 */
void terrace_lab_report_tlabs(struct terrace_lab_heap* heap, unsigned threads, uint64_t unused_bytes, size_t largest_bytes);

/** Called for each buffer: its level, and the part that was not handed out yet. Must not call functions of this file. */
typedef void terrace_lab_visitor(void* argument, int level, void* start, void* end);
/**
 * terrace_lab_walk - visits all buffers that have a tail, sidelined ones included: the parts of the space that hold no objects.
 * Requires a safepoint; changes nothing: threads go on with their buffers. Cost: proportional to threads and buffers.
 */
void terrace_lab_walk(struct terrace_lab_heap* heap, terrace_lab_visitor* visit, void* argument);

/**
 * terrace_lab_read_counters - sums over all threads, detached ones included, and buffers.
 * Exact at a safepoint; otherwise each number was true lately, and they need not fit together.
 * Threads: safe, attached or not. Cost: a lock; proportional to threads and buffers.
 */
void terrace_lab_read_counters(struct terrace_lab_heap* heap, struct terrace_lab_counters* out);

/**
 * terrace_lab_size - the size that the next buffer at @level will have: of @thread (NULL: the configured size), or of the core,
 * processor or node that the caller runs on. 0: there is no such level, or it is passed over. Closes a transaction of
 * terrace/cs.h, as terrace_lab_index(). Threads: safe; of another thread a size it had lately.
 */
size_t terrace_lab_size(const struct terrace_lab_heap* heap, const struct terrace_lab_thread* thread, int level);

/**
 * terrace_lab_associated - TERRACE_LAB_BY_THREAD or TERRACE_LAB_BY_CORE: where objects come from until the next collection.
 * Changes in terrace_lab_collected() only. Threads: safe, but not during that.
 */
int terrace_lab_associated(const struct terrace_lab_heap* heap);

#ifdef __cplusplus
}
#endif
#endif
