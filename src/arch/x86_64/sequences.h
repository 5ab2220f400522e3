// SPDX-License-Identifier: MIT OR Apache-2.0
// Contracts: arch/sequences.h. Labels, the same in each sequence: 1 begin again, 2 start, 3 end, 4 descriptor, 5 abort.
#pragma once

#include "arch/chain.h"
#include "arch/mutants.h"
#include "base/attributes.h"

// The 4 bytes before the abort label are the signature that the kernel asks for; as an instruction it is an undefined one.
#define TERRACE_SEQ_BEGIN                                    \
  "1:\n\t"                                                   \
  "leaq 4f(%%rip), %[scratch]\n\t"                           \
  "movq %[scratch], %%fs:(%[cs])\n"                          \
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
  ".byte 0x0f, 0xb9, 0x3d\n\t"                               \
  ".long 0x53053053\n"                                       \
  "5:\n\t" abort_code "jmp 1b\n\t"                           \
  ".popsection\n\t"
#define TERRACE_SEQ_COUNT_ABORT_OF_CLASS                     \
  "leaq terrace_abort_counts(%%rip), %[scratch]\n\t"         \
  "lock incq (%[scratch],%[cls],8)\n\t"
#define TERRACE_SEQ_COUNT_ABORT "lock incq terrace_abort_counts(%%rip)\n\t"

#if defined(TERRACE_INJECT)
#define TERRACE_SEQ_DELAY(which)                             \
  "movl terrace_delays+4*" #which "(%%rip), %k[scratch]\n\t" \
  "testl %k[scratch], %k[scratch]\n\t"                       \
  "jz 7f\n"                                                  \
  "6:\n\t"                                                   \
  "decl %k[scratch]\n\t"                                     \
  "jnz 6b\n"                                                 \
  "7:\n\t"
#else
#define TERRACE_SEQ_DELAY(which)
#endif

// Compilers have lost or merged outputs of asm goto (GCC up to 13, clang up to 13); an empty statement at each exit stops them.
#define TERRACE_SEQ_AFTER __asm__ volatile("" ::: "memory")

// The sequences of the malloc fast path know their stride (a power of two) and their offsets at compile time.
#define TERRACE_SEQ_SLOT_SHIFTED                             \
  "movslq %%fs:(%[sl]), %[slot]\n\t"                         \
  "shlq %[shift], %[slot]\n\t"                               \
  "addq %[base], %[slot]\n\t"
// The others multiply.
#define TERRACE_SEQ_SLOT_MULTIPLIED                          \
  "movslq %%fs:(%[sl]), %[slot]\n\t"                         \
  "imulq %[stride], %[slot]\n\t"                             \
  "addq %[base], %[slot]\n\t"

// The offset of the slot's number is read where it is needed: with it in a register, callers that keep their arguments for a cold
// way would have one register too few, and save another.
#define TERRACE_SEQ_SLOT_FROM_MEMORY                         \
  "movq %[sl], %[slot]\n\t"                                  \
  "movslq %%fs:(%[slot]), %[slot]\n\t"                       \
  "imulq %[stride], %[slot]\n\t"                             \
  "addq %[base], %[slot]\n\t"

// The word of a class in an array of words. Its address is put together once, before the word is read: Intel processors since
// Golden Cove forward a store to a load of the same word in no time where both name one register and a displacement, and in
// about five cycles where an index is added. Two calls in turn wait for that.
#define TERRACE_SEQ_WORD "leaq (%[slot],%[cls],8), %[slot]\n\t"

// One register for both, except where a delay needs the scratch register while the block is known.
#if defined(TERRACE_INJECT)
#define TERRACE_SEQ_BLOCK "%[block]"
#define TERRACE_SEQ_BLOCK_AND_SCRATCH [block] "=&a"(p), [scratch] "=&r"(scratch)
#else
#define TERRACE_SEQ_BLOCK "%[scratch]"
#define TERRACE_SEQ_BLOCK_AND_SCRATCH [scratch] "=&a"(p)
#endif

namespace terrace::arch {

/// [sequence 7] on word `cls` of an array at `offset` in slots that are `stride` bytes apart; counts as pop() does.
template <int offset, int popped>
TERRACE_INLINE Sequence pop_round(const Area& area, std::byte* const& base, std::size_t stride, std::byte* rounds, std::size_t cls,
                                  void*& block) noexcept {
  void* p;
  std::uint64_t word, slot;
#if defined(TERRACE_INJECT)
  std::uint64_t scratch;
#endif
  __asm__ volatile goto(TERRACE_SEQ_BEGIN TERRACE_SEQ_SLOT_FROM_MEMORY TERRACE_SEQ_WORD TERRACE_SEQ_DELAY(0)
               "movq %c[off](%[slot]), %[word]\n\t"
               "movq -8(%[rounds],%[word]), " TERRACE_SEQ_BLOCK "\n\t"
               "testq " TERRACE_SEQ_BLOCK ", " TERRACE_SEQ_BLOCK "\n\t"
               "jz %l[nothing]\n\t"
               "subq $8, %[word]\n\t" TERRACE_SEQ_DELAY(1)
               "incq %c[popped](%[slot])\n\t"
               "jz %l[due]\n\t" TERRACE_MUTANT_EARLY_END TERRACE_MUTANT_REREAD_AS(TERRACE_SEQ_SLOT_FROM_MEMORY TERRACE_SEQ_WORD)
                   TERRACE_MUTANT_COMMIT("%[word]", "%c[off]", "(%[slot])") TERRACE_MUTANT_NORMAL_END
                       TERRACE_SEQ_TABLE(TERRACE_SEQ_COUNT_ABORT_OF_CLASS)
               : TERRACE_SEQ_BLOCK_AND_SCRATCH, [word] "=&r"(word), [slot] "=&r"(slot)
               : [cs] "r"(area.critical_section), [sl] "m"(area.slot), [base] "m"(base), [cls] "r"(cls),
                 [stride] "r"(stride), [rounds] "r"(rounds), [off] "i"(offset), [popped] "i"(popped)
               : "cc", "memory"
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
  std::uint64_t word, slot, scratch;
  __asm__ volatile goto(TERRACE_SEQ_BEGIN TERRACE_SEQ_SLOT_SHIFTED TERRACE_SEQ_WORD TERRACE_SEQ_DELAY(0)
               "movq %c[off](%[slot]), %[word]\n\t"
               "leaq (%[rounds],%[word]), %[scratch]\n\t"
               "cmpq %[p], -8(%[scratch])\n\t"
               "je %l[suspect]\n\t"
               "cmpq $0, (%[scratch])\n\t"
               "je %l[no_room]\n\t"
               TERRACE_MUTANT_ROUND_BEFORE("movq %[p], (%[scratch])\n\t")
               "addq $8, %[word]\n\t" TERRACE_SEQ_DELAY(1) TERRACE_MUTANT_EARLY_END
                   TERRACE_MUTANT_REREAD_SHIFTED(TERRACE_SEQ_WORD) TERRACE_MUTANT_COMMIT("%[word]", "%c[off]", "(%[slot])")
                       TERRACE_MUTANT_NORMAL_END TERRACE_MUTANT_ROUND_AFTER("movq %[p], -8(%[rounds],%[word])\n\t")
               TERRACE_SEQ_TABLE(TERRACE_SEQ_COUNT_ABORT_OF_CLASS)
               : [word] "=&r"(word), [slot] "=&r"(slot), [scratch] "=&r"(scratch)
               : [cs] "r"(area.critical_section), [sl] "r"(area.slot), [base] "m"(base), [rounds] "r"(rounds), [cls] "r"(cls),
                 [p] "r"(block), [shift] "i"(shift), [off] "i"(offset)
               : "cc", "memory"
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
  __asm__ volatile goto(TERRACE_SEQ_BEGIN TERRACE_SEQ_SLOT_MULTIPLIED TERRACE_SEQ_DELAY(0)
               "movq (%[slot]), %[word]\n\t"
               "testq $-256, %[word]\n\t"
               "jz %l[nothing]\n\t" TERRACE_SEQ_DELAY(1) TERRACE_MUTANT_EARLY_END TERRACE_MUTANT_REREAD_MULTIPLIED
               "movq $0, (%[slot])\n" TERRACE_MUTANT_NORMAL_END TERRACE_SEQ_TABLE(TERRACE_SEQ_COUNT_ABORT)
               : [word] "=&r"(word), [slot] "=&r"(slot), [scratch] "=&r"(scratch)
               : [cs] "r"(area.critical_section), [sl] "r"(area.slot), [base] "r"(words.base),
                 [stride] "r"(words.stride)
               : "cc", "memory"
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
  __asm__ volatile goto(TERRACE_SEQ_BEGIN TERRACE_SEQ_SLOT_MULTIPLIED TERRACE_SEQ_DELAY(0)
               TERRACE_MUTANT_CHECK("cmpq $0, (%[slot])\n\t"
                                    "jne %l[taken]\n\t") TERRACE_SEQ_DELAY(1) TERRACE_MUTANT_EARLY_END
                   TERRACE_MUTANT_REREAD_MULTIPLIED
               "movq %[chain], (%[slot])\n" TERRACE_MUTANT_NORMAL_END TERRACE_SEQ_TABLE(TERRACE_SEQ_COUNT_ABORT)
               : [slot] "=&r"(slot), [scratch] "=&r"(scratch)
               : [cs] "r"(area.critical_section), [sl] "r"(area.slot), [base] "r"(words.base),
                 [stride] "r"(words.stride), [chain] "r"(chain)
               : "cc", "memory"
               : taken);
  return Sequence::done;
taken:
  TERRACE_SEQ_AFTER;
  return Sequence::occupied;
}

/// [sequence 5] top is the word, limit the one after it.
inline Sequence bump(const Area& area, Words words, std::size_t bytes, std::uint64_t& start) noexcept {
  std::uint64_t top, next, slot, scratch;
  __asm__ volatile goto(TERRACE_SEQ_BEGIN TERRACE_SEQ_SLOT_MULTIPLIED TERRACE_SEQ_DELAY(0)
               "movq (%[slot]), %[top]\n\t"
               "movq %[bytes], %[next]\n\t"
               "addq %[top], %[next]\n\t"
               "jc %l[no_room]\n\t"
               "cmpq 8(%[slot]), %[next]\n\t"
               "ja %l[no_room]\n\t" TERRACE_SEQ_DELAY(1) TERRACE_MUTANT_EARLY_END TERRACE_MUTANT_REREAD_MULTIPLIED
                   TERRACE_MUTANT_COMMIT("%[next]", "0", "(%[slot])")
               TERRACE_MUTANT_NORMAL_END TERRACE_SEQ_TABLE(TERRACE_SEQ_COUNT_ABORT)
               : [top] "=&r"(top), [next] "=&r"(next), [slot] "=&r"(slot), [scratch] "=&r"(scratch)
               : [cs] "r"(area.critical_section), [sl] "r"(area.slot), [base] "r"(words.base),
                 [stride] "r"(words.stride), [bytes] "r"(bytes)
               : "cc", "memory"
               : no_room);
  TERRACE_SEQ_AFTER;
  start = top;
  return Sequence::done;
no_room:
  TERRACE_SEQ_AFTER;
  return Sequence::full;
}

/// [sequence 9] in slots of 1 << shift bytes. Limits and `bytes` are below 2^63: so a sum needs no look at the carry, and a top of
/// 2^63 has room for nothing.
template <int shift>
TERRACE_INLINE Sequence bump_armed(const Area& area, std::byte* const& base, std::uint64_t& active, std::size_t bytes,
                                   std::uint64_t& start) noexcept {
  std::uint64_t top, next, slot, scratch;
  __asm__ volatile goto("1:\n\t"
               "leaq 4f(%%rip), %[scratch]\n\t"
               TERRACE_MUTANT_COMPARE("cmpq %[scratch], %%fs:(%[cs])\n\t"
                                      "jne 8f\n\t") TERRACE_SEQ_SLOT_SHIFTED TERRACE_SEQ_DELAY(0)
               "movq (%[slot]), %[top]\n\t"
               "leaq (%[top],%[bytes]), %[next]\n\t"
               "cmpq 8(%[slot]), %[next]\n\t"
               "ja %l[no_room]\n\t" TERRACE_SEQ_DELAY(1) TERRACE_MUTANT_EARLY_END TERRACE_MUTANT_REREAD_SHIFTED("")
                   TERRACE_MUTANT_COMMIT("%[next]", "0", "(%[slot])")
               TERRACE_MUTANT_NORMAL_END TERRACE_SEQ_TABLE(TERRACE_SEQ_COUNT_ABORT)
               ".pushsection .text.terrace_abort, \"ax?\"\n"
               "8:\n\t"
               "cmpq $0, %[base]\n\t"
               "je %l[no_room]\n\t"
               "movq %[scratch], %%fs:(%[cs])\n\t"
               "movq $1, %[active]\n\t"
               "jmp 2b\n\t"
               ".popsection\n\t"
               : [top] "=&r"(top), [next] "=&r"(next), [slot] "=&r"(slot), [scratch] "=&r"(scratch)
               : [cs] "r"(area.critical_section), [sl] "r"(area.slot), [base] "m"(base), [active] "m"(active), [shift] "i"(shift),
                 [bytes] "r"(bytes)
               : "cc", "memory"
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
  __asm__ volatile goto(TERRACE_SEQ_BEGIN TERRACE_SEQ_SLOT_MULTIPLIED TERRACE_SEQ_DELAY(0)
               "movq (%[slot]), %[word]\n\t"
               "movq %[word], %[p]\n\t"
               "shrq $8, %[p]\n\t"
               "jz %l[nothing]\n\t"
               "movq (%[p]), %[next]\n\t"
               "leal 1(%[next]), %k[scratch]\n\t"
               "cmpb %b[scratch], %b[word]\n\t"
               "jne %l[broken]\n\t" TERRACE_SEQ_DELAY(1) TERRACE_MUTANT_EARLY_END TERRACE_MUTANT_REREAD_MULTIPLIED
                   TERRACE_MUTANT_COMMIT("%[next]", "0", "(%[slot])")
               TERRACE_MUTANT_NORMAL_END TERRACE_SEQ_TABLE(TERRACE_SEQ_COUNT_ABORT)
               : [p] "=&r"(p), [word] "=&r"(word), [next] "=&r"(next), [slot] "=&r"(slot), [scratch] "=&r"(scratch)
               : [cs] "r"(area.critical_section), [sl] "r"(area.slot), [base] "r"(words.base), [stride] "r"(words.stride)
               : "cc", "memory"
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
  const std::uint64_t shifted = static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(block)) << 8;
  __asm__ volatile goto(TERRACE_SEQ_BEGIN TERRACE_SEQ_SLOT_MULTIPLIED TERRACE_SEQ_DELAY(0)
               "movq (%[slot]), %[word]\n\t"
               "cmpb %b[cap], %b[word]\n\t"
               "jae %l[no_room]\n\t"
               "movq %[word], (%[p])\n\t"
               "movzbl %b[word], %k[word]\n\t"
               "leaq 1(%[shifted],%[word]), %[word]\n\t" TERRACE_SEQ_DELAY(1) TERRACE_MUTANT_EARLY_END
                   TERRACE_MUTANT_REREAD_MULTIPLIED TERRACE_MUTANT_COMMIT("%[word]", "0", "(%[slot])")
               TERRACE_MUTANT_NORMAL_END TERRACE_SEQ_TABLE(TERRACE_SEQ_COUNT_ABORT)
               : [word] "=&r"(word), [slot] "=&r"(slot), [scratch] "=&r"(scratch)
               : [cs] "r"(area.critical_section), [sl] "r"(area.slot), [base] "r"(words.base), [stride] "r"(words.stride),
                 [p] "r"(block), [shifted] "r"(shifted), [cap] "r"(cap)
               : "cc", "memory"
               : no_room);
  TERRACE_SEQ_AFTER;
  return Sequence::done;
no_room:
  TERRACE_SEQ_AFTER;
  return Sequence::full;
}

}  // namespace terrace::arch
