// SPDX-License-Identifier: MIT OR Apache-2.0
// The places of a sequence that can be broken on purpose, to prove that the tests would notice (tests/inject). A normal build
// has none of them. A mutant is chosen by defining one of
//   TERRACE_MUTANT_WRONG_LENGTH   the sequence ends, for the kernel, before its commit
//   TERRACE_MUTANT_TWO_STORES     the commit is two stores of 4 bytes, with a delay in between
//   TERRACE_MUTANT_SLOT_REREAD    the commit goes to the slot as it is at the end, not to the one that was read
//   TERRACE_MUTANT_MISSING_CHECK  put_all does not look whether the word is free
//   TERRACE_MUTANT_NOT_COMPARED   bump_armed takes its descriptor to be in rseq_cs
//   TERRACE_MUTANT_EARLY_COMPARE  bump_armed compares it before its section begins
//   TERRACE_MUTANT_LATE_ROUND     push_round writes the block into its place after the commit
#pragma once

#if defined(TERRACE_MUTANT_WRONG_LENGTH)
#define TERRACE_MUTANT_EARLY_END "3:\n\t"
#define TERRACE_MUTANT_NORMAL_END "\n\t"
#else
#define TERRACE_MUTANT_EARLY_END
#define TERRACE_MUTANT_NORMAL_END "3:\n\t"
#endif

#if defined(__x86_64__)

#if defined(TERRACE_MUTANT_TWO_STORES)
// Half the word is visible before the other half; the delay loop needs the scratch register, so the value is shifted in place.
#define TERRACE_MUTANT_COMMIT(value, offset, place) \
  "movq " value ", %[scratch]\n\t"                  \
  "movl %k[scratch], " offset place "\n\t"          \
  TERRACE_SEQ_DELAY(1)                              \
  "movq " value ", %[scratch]\n\t"                  \
  "shrq $32, %[scratch]\n\t"                       \
  "movl %k[scratch], 4+" offset place "\n"
#else
#define TERRACE_MUTANT_COMMIT(value, offset, place) "movq " value ", " offset place "\n"
#endif

#endif

#if defined(__aarch64__)

#if defined(TERRACE_MUTANT_TWO_STORES)
#define TERRACE_MUTANT_COMMIT(value, place, offset)                             \
  "add x17, %[" place "], " offset "\n\t"                                       \
  "str %w[" value "], [x17]\n\t" TERRACE_SEQ_DELAY(1)                          \
  "lsr %[scratch], %[" value "], #32\n\t"                                      \
  "str %w[scratch], [x17, #4]\n"
#else
#define TERRACE_MUTANT_COMMIT(value, place, offset) "str %[" value "], [%[" place "], " offset "]\n"
#endif

#endif

// Where the place of a class's word was added to the slot, a re-read has to add it again: `index`; or `slot` is all of it.
#if defined(TERRACE_MUTANT_WRONG_LENGTH)
// Between the end that the kernel believes in and the commit: time for a preemption to do harm.
#define TERRACE_MUTANT_REREAD_SHIFTED(index) TERRACE_SEQ_DELAY(1)
#define TERRACE_MUTANT_REREAD_AS(slot) TERRACE_SEQ_DELAY(1)
#define TERRACE_MUTANT_REREAD_MULTIPLIED TERRACE_SEQ_DELAY(1)
#elif defined(TERRACE_MUTANT_SLOT_REREAD)
// Moving the re-read out of the protected range is what makes it a re-read: inside, a migration would have aborted it.
#define TERRACE_MUTANT_REREAD_SHIFTED(index) "3:\n\t" TERRACE_SEQ_DELAY(1) TERRACE_SEQ_SLOT_SHIFTED index
#define TERRACE_MUTANT_REREAD_AS(slot) "3:\n\t" TERRACE_SEQ_DELAY(1) slot
#define TERRACE_MUTANT_REREAD_MULTIPLIED "3:\n\t" TERRACE_SEQ_DELAY(1) TERRACE_SEQ_SLOT_MULTIPLIED
#undef TERRACE_MUTANT_NORMAL_END
#define TERRACE_MUTANT_NORMAL_END "\n\t"
#else
#define TERRACE_MUTANT_REREAD_SHIFTED(index)
#define TERRACE_MUTANT_REREAD_AS(slot)
#define TERRACE_MUTANT_REREAD_MULTIPLIED
#endif

#if defined(TERRACE_MUTANT_MISSING_CHECK)
#define TERRACE_MUTANT_CHECK(code)
#else
#define TERRACE_MUTANT_CHECK(code) code
#endif

#if defined(TERRACE_MUTANT_LATE_ROUND)
#define TERRACE_MUTANT_ROUND_BEFORE(code)
#define TERRACE_MUTANT_ROUND_AFTER(code) TERRACE_SEQ_DELAY(1) code
#else
#define TERRACE_MUTANT_ROUND_BEFORE(code) code
#define TERRACE_MUTANT_ROUND_AFTER(code)
#endif

// Where bump_armed looks for its descriptor: after the label of the start.
#if defined(TERRACE_MUTANT_NOT_COMPARED)
#define TERRACE_MUTANT_COMPARE(code) "2:\n\t"
#elif defined(TERRACE_MUTANT_EARLY_COMPARE)
#define TERRACE_MUTANT_COMPARE(code) code TERRACE_SEQ_DELAY(0) "2:\n\t"
#else
#define TERRACE_MUTANT_COMPARE(code) "2:\n\t" code
#endif
