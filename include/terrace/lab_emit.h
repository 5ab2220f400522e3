/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What a compiler needs to emit allocations in line from the buffers of terrace/lab.h. docs/guide/lab.md has the instructions.
 * What lab.h says of all functions holds here.
 *
 * Emitted critical sections. The kernel reads the descriptor (struct rseq_cs) in a thread's rseq_cs when it next disturbs the
 * thread, however long after the section, and ends the process by SIGSEGV if the descriptor is gone. So a descriptor must live
 * until every thread that may have executed its section has ended or called terrace_lab_forget_sections(). Best, all compiled
 * code calls one stub per process that is never freed.
 */
#ifndef TERRACE_LAB_EMIT_H
#define TERRACE_LAB_EMIT_H

#include "terrace/lab.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Constants of the ABI. */
enum {
  TERRACE_LAB_TOP_OFFSET = 0, /* in struct terrace_lab_thread: the TLAB */
  TERRACE_LAB_END_OFFSET = 8,
  TERRACE_LAB_ACTIVE_OFFSET = 16,
  TERRACE_LAB_BUFFER_TOP_OFFSET = 0, /* in a buffer of the levels above */
  TERRACE_LAB_BUFFER_END_OFFSET = 8,
  TERRACE_LAB_BUFFER_SHIFT = 8, /* buffer i is at base + (i << this) */
  TERRACE_LAB_BUFFER_STRIDE = 1 << TERRACE_LAB_BUFFER_SHIFT
};

/* Constants of a heap, and the offsets above for compilers that ask at run time. */
struct terrace_lab_attributes {
  unsigned abi; /* TERRACE_LAB_ABI of the engine */
  unsigned buffer_shift;
  size_t granule;         /* sizes are multiples of it: the configuration's alignment */
  size_t min_fill;        /* the shortest dead object */
  size_t large_threshold; /* for larger objects call the engine at once */
  size_t top_offset, end_offset, active_offset;
  size_t buffer_top_offset, buffer_end_offset;
};
/** Sets @out, constant for the life of the heap. */
void terrace_lab_read_attributes(const struct terrace_lab_heap* heap, struct terrace_lab_attributes* out);

/*
 * Where the buffers of a level lie, for compilers and tools; constant for the life of the heap. Buffer i has its top, an
 * unsigned number of 8 bytes, at base + i * stride, and its end 8 bytes further.
 */
struct terrace_lab_layout {
  char* base;
  size_t stride;
  unsigned count;
  /* From the thread pointer, for emitted critical sections: to rseq_cs, and to the 4 bytes that hold i. Both 0 with
     TERRACE_LAB_CAS and without restartable sequences: call terrace_lab_allocate_core(). Only for threads registered with rseq,
     as libc registers all that it starts. In others i is 0 or -1, nothing restarts a section, and the 4 bytes below rseq_cs are
     negative; terrace_lab_allocate_core() checks that. */
  ptrdiff_t section_offset, slot_offset;
  int sync; /* TERRACE_LAB_CAS: emitted code may allocate by compare-and-swap. TERRACE_LAB_RESTARTABLE: i is a slot of
               terrace/cs.h; emitted code allocates by a restartable sequence whose last instruction stores the new top */
  /* For debuggers of stopped processes and core files. No object lies in a buffer's bytes from top to end + tail_reserve,
     unless its end is 0, nor in ranges aside. A buffer whose top is TERRACE_LAB_REFILLING or above says nothing. */
  size_t tail_reserve;
  const uint64_t* aside;       /* start and end of each range aside, 16 bytes */
  const unsigned* aside_count; /* their present number */
};
/** Sets @out. Returns 0; or -1 with errno EINVAL: @level does not exist or is the thread's. */
int terrace_lab_read_layout(const struct terrace_lab_heap* heap, int level, struct terrace_lab_layout* out);

/**
 * The buffer of @level, which exists, where the caller runs now; 0 for the thread level. With TERRACE_LAB_RESTARTABLE it ends
 * the caller's transaction of terrace/cs.h. Cost: a load or two; without rseq a cpu number from libc.
 */
unsigned terrace_lab_index(const struct terrace_lab_heap* heap, int level);

/* The least `top` of a buffer that is being refilled (PLAB_REFILL_IN_PROGRESS of [HAB]) or drained. With any size added it is
   above `end`. */
#define TERRACE_LAB_REFILLING (UINT64_C(1) << 63)

#ifdef __cplusplus
}
#endif
#endif
