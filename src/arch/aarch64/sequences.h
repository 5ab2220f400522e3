// SPDX-License-Identifier: MIT OR Apache-2.0
// Contracts: arch/sequences.h. Labels as in x86_64/sequences.h: 1 begin again, 2 start, 3 end, 4 descriptor, 5 abort.
//
// The order of the commit: a plain str. Another cpu reads these words only after stop_words(), whose membarrier orders all that
// came before, so no release is needed here.
#pragma once

#include "arch/chain.h"
#include "arch/cpu.h"
#include "arch/mutants.h"
#include "base/attributes.h"

// The 4 bytes before the abort label are the signature that the kernel asks for; as an instruction it is an undefined one.
#define TERRACE_SEQ_BEGIN                                    \
  "1:\n\t"                                                   \
  "adrp %[scratch], 4f\n\t"                                  \
  "add %[scratch], %[scratch], :lo12:4f\n\t"                 \
  "str %[scratch], [%[cs]]\n"                                \
  "2:\n\t"
// "?": into the section group of the function, if it has one, so that they are kept or dropped together.
#define TERRACE_SEQ_TABLE(abort_code)                        \
  ".pushsection __rseq_cs, \"aw?\"\n\t"                      \
  ".balign 32\n"                                             \
  "4:\n\t"                                                   \
  ".long 0, 0\n\t"                                           \
  ".quad 2b, 3b - 2b, 5f\n\t"                                \
  ".popsection\n\t"                                          \
  ".pushsection .text.terrace_abort, \"ax?\"\n\t"            \
  ".balign 4\n\t"                                            \
  ".inst 0xd428bc00\n"                                       \
  "5:\n\t" abort_code "b 1b\n\t"                             \
  ".popsection\n\t"
// x16 and x17 are the registers that any branch may change; the sequences declare them clobbered.
#define TERRACE_SEQ_ADD_ONE                                  \
  "8:\n\t"                                                   \
  "ldxr x17, [x16]\n\t"                                      \
  "add x17, x17, #1\n\t"                                     \
  "stxr %w[scratch], x17, [x16]\n\t"                         \
  "cbnz %w[scratch], 8b\n\t"
#define TERRACE_SEQ_COUNT_ABORT                              \
  "adrp x16, terrace_abort_counts\n\t"                       \
  "add x16, x16, :lo12:terrace_abort_counts\n\t" TERRACE_SEQ_ADD_ONE
#define TERRACE_SEQ_COUNT_ABORT_OF_CLASS                     \
  "adrp x16, terrace_abort_counts\n\t"                       \
  "add x16, x16, :lo12:terrace_abort_counts\n\t"             \
  "add x16, x16, %[cls], lsl #3\n\t" TERRACE_SEQ_ADD_ONE

#if defined(TERRACE_INJECT)
#define TERRACE_SEQ_DELAY(which)                             \
  "adrp x16, terrace_delays\n\t"                             \
  "add x16, x16, :lo12:terrace_delays\n\t"                   \
  "ldr w16, [x16, #4*" #which "]\n\t"                        \
  "cbz w16, 7f\n"                                            \
  "6:\n\t"                                                   \
  "sub w16, w16, #1\n\t"                                     \
  "cbnz w16, 6b\n"                                           \
  "7:\n\t"
#else
#define TERRACE_SEQ_DELAY(which)
#endif

#define TERRACE_SEQ_AFTER __asm__ volatile("" ::: "memory")

#define TERRACE_SEQ_SLOT_SHIFTED                             \
  "ldrsw %[slot], [%[sl]]\n\t"                               \
  "add %[slot], %[base], %[slot], lsl %[shift]\n\t"
#define TERRACE_SEQ_SLOT_MULTIPLIED                          \
  "ldrsw %[slot], [%[sl]]\n\t"                               \
  "madd %[slot], %[slot], %[stride], %[base]\n\t"

// The word of a class in an array of words.
#define TERRACE_SEQ_WORD "add %[slot], %[slot], %[cls], lsl #3\n\t"

#define TERRACE_SEQ_POP_COUNT                                \
  "ldr %[scratch], [%[slot], %[popped]]\n\t"                 \
  "add %[scratch], %[scratch], #1\n\t"                       \
  "str %[scratch], [%[slot], %[popped]]\n\t"               \
  "cbz %[scratch], %l[due]\n\t"

namespace terrace::arch {

/// [sequence 7] on word `cls` of an array at `offset` in slots that are `stride` bytes apart. Counts in the number `cls` of an array at
/// `popped`.
template <int offset, int popped>
TERRACE_INLINE Sequence pop_round(const Area& area, std::byte* const& base, std::size_t stride, std::byte* rounds, std::size_t cls,
                                  void*& block) noexcept {
  void* p;
  std::uint64_t word, slot, scratch;
  const std::uintptr_t tp = thread_pointer();
  __asm__ volatile goto(TERRACE_SEQ_BEGIN TERRACE_SEQ_SLOT_MULTIPLIED TERRACE_SEQ_WORD TERRACE_SEQ_DELAY(0)
               "ldr %[word], [%[slot], %[off]]\n\t"
               "sub %[word], %[word], #8\n\t"
               "ldr %[p], [%[rounds], %[word]]\n\t"
               "cbz %[p], %l[nothing]\n\t" TERRACE_SEQ_DELAY(1) TERRACE_SEQ_POP_COUNT TERRACE_MUTANT_EARLY_END
                   TERRACE_MUTANT_REREAD_AS(TERRACE_SEQ_SLOT_MULTIPLIED TERRACE_SEQ_WORD)
                   TERRACE_MUTANT_COMMIT("word", "slot", "%[off]") TERRACE_MUTANT_NORMAL_END
                       TERRACE_SEQ_TABLE(TERRACE_SEQ_COUNT_ABORT_OF_CLASS)
               : [p] "=&r"(p), [word] "=&r"(word), [slot] "=&r"(slot), [scratch] "=&r"(scratch)
               : [cs] "r"(tp + static_cast<std::uintptr_t>(area.critical_section)),
                 [sl] "r"(tp + static_cast<std::uintptr_t>(area.slot)), [base] "r"(base), [cls] "r"(cls),
                 [stride] "r"(stride), [rounds] "r"(rounds), [off] "i"(offset), [popped] "i"(popped)
               : "cc", "memory", "x16", "x17"
               : nothing, due);
  TERRACE_SEQ_AFTER;
  block = p;
  return Sequence::done;
nothing:
due:
  TERRACE_SEQ_AFTER;
  return Sequence::empty;
}

/// [sequence 8] as above.
template <int shift, int offset>
TERRACE_INLINE Sequence push_round(const Area& area, std::byte* const& base, std::byte* rounds, std::size_t cls,
                                   void* block) noexcept {
  std::uint64_t word, slot, scratch, place;
  const std::uintptr_t tp = thread_pointer();
  __asm__ volatile goto(TERRACE_SEQ_BEGIN TERRACE_SEQ_SLOT_SHIFTED TERRACE_SEQ_WORD TERRACE_SEQ_DELAY(0)
               "ldr %[word], [%[slot], %[off]]\n\t"
               "add %[place], %[rounds], %[word]\n\t"
               "ldur %[scratch], [%[place], #-8]\n\t"
               "cmp %[scratch], %[p]\n\t"
               "b.eq %l[suspect]\n\t"
               "ldr %[scratch], [%[place]]\n\t"
               "cbz %[scratch], %l[no_room]\n\t"
               TERRACE_MUTANT_ROUND_BEFORE("str %[p], [%[place]]\n\t")
               "add %[word], %[word], #8\n\t" TERRACE_SEQ_DELAY(1) TERRACE_MUTANT_EARLY_END
                   TERRACE_MUTANT_REREAD_SHIFTED(TERRACE_SEQ_WORD)
                   TERRACE_MUTANT_COMMIT("word", "slot", "%[off]") TERRACE_MUTANT_NORMAL_END
                       TERRACE_MUTANT_ROUND_AFTER("str %[p], [%[place]]\n\t")
               TERRACE_SEQ_TABLE(TERRACE_SEQ_COUNT_ABORT_OF_CLASS)
               : [word] "=&r"(word), [slot] "=&r"(slot), [scratch] "=&r"(scratch), [place] "=&r"(place)
               : [cs] "r"(tp + static_cast<std::uintptr_t>(area.critical_section)),
                 [sl] "r"(tp + static_cast<std::uintptr_t>(area.slot)), [base] "r"(base), [rounds] "r"(rounds), [cls] "r"(cls),
                 [p] "r"(block), [shift] "i"(shift), [off] "i"(offset)
               : "cc", "memory", "x16", "x17"
               : no_room, suspect);
  TERRACE_SEQ_AFTER;
  return Sequence::done;
no_room:
  TERRACE_SEQ_AFTER;
  return Sequence::full;
suspect:
  TERRACE_SEQ_AFTER;
  return Sequence::freed_twice;
}

/// [sequence 3]
inline Sequence take_all(const Area& area, Words words, Word& chain) noexcept {
  std::uint64_t word, slot, scratch;
  const std::uintptr_t tp = thread_pointer();
  __asm__ volatile goto(TERRACE_SEQ_BEGIN TERRACE_SEQ_SLOT_MULTIPLIED TERRACE_SEQ_DELAY(0)
               "ldr %[word], [%[slot]]\n\t"
               "lsr %[scratch], %[word], #8\n\t"
               "cbz %[scratch], %l[nothing]\n\t" TERRACE_SEQ_DELAY(1) TERRACE_MUTANT_EARLY_END
                   TERRACE_MUTANT_REREAD_MULTIPLIED
               "str xzr, [%[slot]]\n" TERRACE_MUTANT_NORMAL_END TERRACE_SEQ_TABLE(TERRACE_SEQ_COUNT_ABORT)
               : [word] "=&r"(word), [slot] "=&r"(slot), [scratch] "=&r"(scratch)
               : [cs] "r"(tp + static_cast<std::uintptr_t>(area.critical_section)),
                 [sl] "r"(tp + static_cast<std::uintptr_t>(area.slot)), [base] "r"(words.base),
                 [stride] "r"(words.stride)
               : "cc", "memory", "x16", "x17"
               : nothing);
  TERRACE_SEQ_AFTER;
  chain = word;
  return Sequence::done;
nothing:
  TERRACE_SEQ_AFTER;
  return Sequence::empty;
}

/// [sequence 4]
inline Sequence put_all(const Area& area, Words words, Word chain) noexcept {
  std::uint64_t slot, scratch;
  const std::uintptr_t tp = thread_pointer();
  __asm__ volatile goto(TERRACE_SEQ_BEGIN TERRACE_SEQ_SLOT_MULTIPLIED TERRACE_SEQ_DELAY(0)
               TERRACE_MUTANT_CHECK("ldr %[scratch], [%[slot]]\n\t"
                                    "cbnz %[scratch], %l[taken]\n\t") TERRACE_SEQ_DELAY(1) TERRACE_MUTANT_EARLY_END
                   TERRACE_MUTANT_REREAD_MULTIPLIED
               "str %[chain], [%[slot]]\n" TERRACE_MUTANT_NORMAL_END TERRACE_SEQ_TABLE(TERRACE_SEQ_COUNT_ABORT)
               : [slot] "=&r"(slot), [scratch] "=&r"(scratch)
               : [cs] "r"(tp + static_cast<std::uintptr_t>(area.critical_section)),
                 [sl] "r"(tp + static_cast<std::uintptr_t>(area.slot)), [base] "r"(words.base),
                 [stride] "r"(words.stride), [chain] "r"(chain)
               : "cc", "memory", "x16", "x17"
               : taken);
  TERRACE_SEQ_AFTER;
  return Sequence::done;
taken:
  TERRACE_SEQ_AFTER;
  return Sequence::occupied;
}

/// [sequence 5] top is the word, limit the one after it.
inline Sequence bump(const Area& area, Words words, std::size_t bytes, std::uint64_t& start) noexcept {
  std::uint64_t top, next, slot, scratch;
  const std::uintptr_t tp = thread_pointer();
  __asm__ volatile goto(TERRACE_SEQ_BEGIN TERRACE_SEQ_SLOT_MULTIPLIED TERRACE_SEQ_DELAY(0)
               "ldar %[top], [%[slot]]\n\t"  // the limit is not read before: who has closed the words may have opened them elsewhere
               "adds %[next], %[top], %[bytes]\n\t"
               "b.cs %l[no_room]\n\t"
               "ldr %[scratch], [%[slot], #8]\n\t"
               "cmp %[next], %[scratch]\n\t"
               "b.hi %l[no_room]\n\t" TERRACE_SEQ_DELAY(1) TERRACE_MUTANT_EARLY_END TERRACE_MUTANT_REREAD_MULTIPLIED
                   TERRACE_MUTANT_COMMIT("next", "slot", "#0")
               TERRACE_MUTANT_NORMAL_END TERRACE_SEQ_TABLE(TERRACE_SEQ_COUNT_ABORT)
               : [top] "=&r"(top), [next] "=&r"(next), [slot] "=&r"(slot), [scratch] "=&r"(scratch)
               : [cs] "r"(tp + static_cast<std::uintptr_t>(area.critical_section)),
                 [sl] "r"(tp + static_cast<std::uintptr_t>(area.slot)), [base] "r"(words.base),
                 [stride] "r"(words.stride), [bytes] "r"(bytes)
               : "cc", "memory", "x16", "x17"
               : no_room);
  TERRACE_SEQ_AFTER;
  start = top;
  return Sequence::done;
no_room:
  TERRACE_SEQ_AFTER;
  return Sequence::full;
}

/// [sequence 9] in slots of 1 << shift bytes. Limits and `bytes` are below 2^63: so a sum needs no look at the carry, and a top of
/// 2^63 has room for nothing. The cold part stays in the function's section: a conditional branch reaches 1 MiB only.
template <int shift>
TERRACE_INLINE Sequence bump_armed(const Area& area, std::byte* const& base, std::uint64_t& active, std::size_t bytes,
                                   std::uint64_t& start) noexcept {
  std::uint64_t top, next, slot, scratch;
  const std::uintptr_t tp = thread_pointer();
  __asm__ volatile goto("1:\n\t"
               "adrp %[scratch], 4f\n\t"
               "add %[scratch], %[scratch], :lo12:4f\n\t"
               TERRACE_MUTANT_COMPARE("ldr x17, [%[cs]]\n\t"
                                      "cmp x17, %[scratch]\n\t"
                                      "b.ne 9f\n\t") TERRACE_SEQ_SLOT_SHIFTED TERRACE_SEQ_DELAY(0)
               "ldar %[top], [%[slot]]\n\t"
               "add %[next], %[top], %[bytes]\n\t"
               "ldr %[scratch], [%[slot], #8]\n\t"
               "cmp %[next], %[scratch]\n\t"
               "b.hi %l[no_room]\n\t" TERRACE_SEQ_DELAY(1) TERRACE_MUTANT_EARLY_END TERRACE_MUTANT_REREAD_SHIFTED("")
                   TERRACE_MUTANT_COMMIT("next", "slot", "#0")
               TERRACE_MUTANT_NORMAL_END TERRACE_SEQ_TABLE(TERRACE_SEQ_COUNT_ABORT)
               ".subsection 1\n"
               "9:\n\t"
               "cbz %[base], %l[no_room]\n\t"
               "str %[scratch], [%[cs]]\n\t"
               "mov x17, #1\n\t"
               "str x17, [%[active]]\n\t"
               "b 2b\n\t"
               ".previous\n\t"
               : [top] "=&r"(top), [next] "=&r"(next), [slot] "=&r"(slot), [scratch] "=&r"(scratch)
               : [cs] "r"(tp + static_cast<std::uintptr_t>(area.critical_section)),
                 [sl] "r"(tp + static_cast<std::uintptr_t>(area.slot)), [base] "r"(base), [active] "r"(&active),
                 [shift] "i"(shift), [bytes] "r"(bytes)
               : "cc", "memory", "x16", "x17"
               : no_room);
  TERRACE_SEQ_AFTER;
  start = top;
  return Sequence::done;
no_room:
  TERRACE_SEQ_AFTER;
  return Sequence::full;
}

/// [sequence 1]
inline Sequence pop_word(const Area& area, Words words, void*& block) noexcept {
  void* p;
  std::uint64_t word, next, slot, scratch;
  const std::uintptr_t tp = thread_pointer();
  __asm__ volatile goto(TERRACE_SEQ_BEGIN TERRACE_SEQ_SLOT_MULTIPLIED TERRACE_SEQ_DELAY(0)
               "ldr %[word], [%[slot]]\n\t"
               "lsr %[p], %[word], #8\n\t"
               "cbz %[p], %l[nothing]\n\t"
               "ldr %[next], [%[p]]\n\t"
               "add %w[scratch], %w[next], #1\n\t"
               "eor %w[scratch], %w[scratch], %w[word]\n\t"
               "tst %w[scratch], #0xff\n\t"
               "b.ne %l[broken]\n\t" TERRACE_SEQ_DELAY(1) TERRACE_MUTANT_EARLY_END TERRACE_MUTANT_REREAD_MULTIPLIED
                   TERRACE_MUTANT_COMMIT("next", "slot", "#0")
               TERRACE_MUTANT_NORMAL_END TERRACE_SEQ_TABLE(TERRACE_SEQ_COUNT_ABORT)
               : [p] "=&r"(p), [word] "=&r"(word), [next] "=&r"(next), [slot] "=&r"(slot), [scratch] "=&r"(scratch)
               : [cs] "r"(tp + static_cast<std::uintptr_t>(area.critical_section)),
                 [sl] "r"(tp + static_cast<std::uintptr_t>(area.slot)), [base] "r"(words.base),
                 [stride] "r"(words.stride)
               : "cc", "memory", "x16", "x17"
               : nothing, broken);
  TERRACE_SEQ_AFTER;
  block = p;
  return Sequence::done;
nothing:
  TERRACE_SEQ_AFTER;
  return Sequence::empty;
broken:
  TERRACE_SEQ_AFTER;
  return Sequence::corrupt;
}

/// [sequence 2]
inline Sequence push_word(const Area& area, Words words, unsigned cap, void* block) noexcept {
  std::uint64_t word, slot, scratch;
  const std::uintptr_t tp = thread_pointer();
  __asm__ volatile goto(TERRACE_SEQ_BEGIN TERRACE_SEQ_SLOT_MULTIPLIED TERRACE_SEQ_DELAY(0)
               "ldr %[word], [%[slot]]\n\t"
               "and %w[scratch], %w[word], #0xff\n\t"
               "cmp %w[scratch], %w[cap]\n\t"
               "b.hs %l[no_room]\n\t"
               "str %[word], [%[p]]\n\t"
               "add %w[scratch], %w[scratch], #1\n\t"
               "orr %[word], %[scratch], %[p], lsl #8\n\t" TERRACE_SEQ_DELAY(1) TERRACE_MUTANT_EARLY_END
                   TERRACE_MUTANT_REREAD_MULTIPLIED TERRACE_MUTANT_COMMIT("word", "slot", "#0")
               TERRACE_MUTANT_NORMAL_END TERRACE_SEQ_TABLE(TERRACE_SEQ_COUNT_ABORT)
               : [word] "=&r"(word), [slot] "=&r"(slot), [scratch] "=&r"(scratch)
               : [cs] "r"(tp + static_cast<std::uintptr_t>(area.critical_section)),
                 [sl] "r"(tp + static_cast<std::uintptr_t>(area.slot)), [base] "r"(words.base),
                 [stride] "r"(words.stride), [p] "r"(block), [cap] "r"(cap)
               : "cc", "memory", "x16", "x17"
               : no_room);
  TERRACE_SEQ_AFTER;
  return Sequence::done;
no_room:
  TERRACE_SEQ_AFTER;
  return Sequence::full;
}

}  // namespace terrace::arch
