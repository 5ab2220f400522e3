/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What a compiler has to know to emit allocations in line, from the buffers of terrace/lab.h: constants of the ABI, those of a
 * heap, where the buffers of a level lie. docs/guide/lab.md has the instructions.
 *
 * Emitted critical sections. The kernel reads the descriptor (struct rseq_cs) that a thread's rseq_cs names whenever it next
 * disturbs the thread, however long after the section ended, and ends the process by SIGSEGV if the descriptor is gone. So how
 * long a descriptor lives is part of the contract: from the first execution of its section until every thread that may have
 * executed it has called terrace_lab_forget_sections() or has ended. The recommended form is ONE stub with one descriptor per
 * process, which is never freed and which all compiled code calls or jumps to: code can be freed at will then, and as the stub
 * finds its own descriptor in rseq_cs, it need not be stored for each object.
 */
#ifndef TERRACE_LAB_EMIT_H
#define TERRACE_LAB_EMIT_H

#include "terrace/lab.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Constants of the ABI, in bytes. */
enum {
  TERRACE_LAB_TOP_OFFSET = 0, /* in struct terrace_lab_thread: the TLAB */
  TERRACE_LAB_END_OFFSET = 8,
  TERRACE_LAB_ACTIVE_OFFSET = 16,
  TERRACE_LAB_BUFFER_TOP_OFFSET = 0, /* in a buffer of the levels above */
  TERRACE_LAB_BUFFER_END_OFFSET = 8,
  TERRACE_LAB_BUFFER_SHIFT = 8, /* buffer i is at base + (i << this) */
  TERRACE_LAB_BUFFER_STRIDE = 1 << TERRACE_LAB_BUFFER_SHIFT
};

/*
 * Constants of a heap, for a compiler that emits allocations in line. The offsets are those above, for compilers that ask at
 * run time.
 */
struct terrace_lab_attributes {
  unsigned abi; /* TERRACE_LAB_ABI of the engine */
  unsigned buffer_shift;
  size_t granule;         /* sizes are rounded up to multiples of it: the configuration's alignment */
  size_t min_fill;        /* the shortest dead object */
  size_t large_threshold; /* larger objects come from no buffer that objects are taken from in line: call the engine at once */
  size_t top_offset, end_offset, active_offset;
  size_t buffer_top_offset, buffer_end_offset;
};
/**
 * terrace_lab_read_attributes - sets @out. They stay for the life of the heap. Threads: safe.
 */
void terrace_lab_read_attributes(const struct terrace_lab_heap* heap, struct terrace_lab_attributes* out);

/*
 * Where the buffers of a level lie: for code that a compiler emits, and for tools. Buffer i has its top, an unsigned number of
 * 8 bytes, at base + i * stride, and its end 8 bytes behind. All of it stays for the life of the heap.
 */
struct terrace_lab_layout {
  char* base;
  size_t stride;
  unsigned count;
  /* Offsets from the thread pointer, for emitted critical sections: of the kernel's pointer rseq_cs, and of the 4 bytes with i.
     Both 0 where there are none (TERRACE_LAB_CAS, and on the rungs without sequences): call terrace_lab_allocate_core().
     Only for threads that are registered, as libc registers all it starts: in the area of one that is not, i reads as 0 or -1
     and nothing restarts a section. The 4 bytes below rseq_cs are negative then; terrace_lab_allocate_core() looks. */
  ptrdiff_t section_offset, slot_offset;
  int sync; /* TERRACE_LAB_CAS: emitted code may take objects by compare-and-swap, see docs/guide/lab.md.
               TERRACE_LAB_RESTARTABLE: i is a slot of terrace/cs.h; emitted code takes objects by a restartable sequence of its
               own with these offsets, whose last instruction stores the new top; where they are 0, by
               terrace_lab_allocate_core() */
  /* For debuggers, which walk the space of a stopped process or of a core file without calling anything. What holds no object:
     of each buffer the bytes from top to end + tail_reserve, unless its end is 0; and the ranges that are put aside. A buffer
     that somebody refills at that moment does not tell (its top is TERRACE_LAB_REFILLING or above). */
  size_t tail_reserve;
  const uint64_t* aside;       /* start and end of each range that is put aside, 16 bytes */
  const unsigned* aside_count; /* how many there are at the moment */
};
/**
 * terrace_lab_read_layout - where the buffers of @level lie.
 * Returns 0, or -1 and errno EINVAL: there is no such level, or it is the thread's. Threads: safe.
 */
int terrace_lab_read_layout(const struct terrace_lab_heap* heap, int level, struct terrace_lab_layout* out);

/**
 * terrace_lab_index - the buffer of @level, which exists, that belongs to where the caller runs at this moment; it may be
 * elsewhere at the next. 0 for the thread level. With critical sections: closes a transaction of terrace/cs.h that the caller
 * has open. Threads: safe. Cost: a load or two; without rseq a cpu number from libc.
 */
unsigned terrace_lab_index(const struct terrace_lab_heap* heap, int level);

/* The least value of `top` while a buffer is being refilled, PLAB_REFILL_IN_PROGRESS of [HAB], or drained: with any size added
   it is above `end`. */
#define TERRACE_LAB_REFILLING (UINT64_C(1) << 63)

#ifdef __cplusplus
}
#endif
#endif
