// SPDX-License-Identifier: MIT OR Apache-2.0
// The restartable sequences: their contracts, in words. One file per ISA implements them: same names, same order.
//
// A sequence runs between `start` and `end`. When the kernel preempts, migrates or signals the thread in between, it
// continues at the abort label instead, which counts the abort and begins again. So a sequence may read whatever it likes
// and write whatever it owns, and makes everything visible by ONE store, its last instruction: the commit. An abort before
// the commit has no effect; after the commit the sequence has ended. No call, no system call, no division inside.
// `slot` is read exactly once per attempt, inside the sequence. Delay points D1 (slot known, nothing read yet) and D2
// (everything known, commit not done) exist in builds with TERRACE_INJECT only.
//
// A chain is named by one 64-bit word (see arch/chain.h): address << 8 | count. 0 is the empty chain; `stopped_word` (address
// 0, count 255) is left in a word by stop_words(): to pop and take_all it looks empty, to push full, to put_all occupied.
//
// A magazine (see level/magazine.h) is an array of pointers, its rounds, with a 0 below the first and a 0 above the last, and
// what is not 0 in all places between the two. Its word is the distance from `rounds` to the place behind the top round. Around
// `rounds` lie zeros: so to pop_round and push_round the words 0 (no magazine) and `stopped_word` are a magazine that is
// empty and full. take_all and put_all move magazines as they move chains: what is below 256 is none (arch/word.h).
//
// Where the words are:  word(slot) = base + slot * stride + offset.
// A thread's rseq area lies at constant offsets from its thread pointer; `Area` has the two that are needed. All sequences
// require a thread that is registered: in an area that the kernel does not keep, mm_cid reads as 0, which is somebody's slot,
// and nothing would abort the thread. So whoever runs one asks registered(area) before; the answer can change by the thread's
// own doing only.
//
//   pop_word(words) -> block                                                                       [sequence 1]
//     start:  w := word(slot);  if address(w) = 0 -> empty          nothing written
//             n := first word of block(w)                           the chain as it was before block(w) was pushed
//             if count(n) + 1 != count(w) -> corrupt                nothing written; somebody wrote into a free block
//     commit: word(slot) := n
//
//   push_word(words, cap, block)                                                                   [sequence 2]
//     start:  w := word(slot);  if count(w) >= cap -> full          nothing written
//             first word of block := w                              the block is ours, so this is no commit
//     commit: word(slot) := block << 8 | (count(w) + 1)
//
//   take_all(words) -> w                                           chain or magazine               [sequence 3]
//     start:  w := word(slot);  if w < 256 -> empty
//     commit: word(slot) := 0                                       what w names is private to the caller now
//
//   put_all(words, new)                                                                            [sequence 4]
//     start:  w := word(slot);  if w != 0 -> occupied
//     commit: word(slot) := new
//
//   bump(words, bytes) -> address                                  two words: top, then limit      [sequence 5]
//     start:  t := top(slot);  n := t + bytes;  if n > limit(slot) or n < t -> full
//     commit: top(slot) := n
//
//   store / compare_exchange of 32 and 64 bits, inside one open transaction                        [sequence 6]
//     start:  if rseq_cs != transaction -> invalid                  the kernel cleared it: there was interference
//             (compare_exchange: if *address != expected -> mismatch)
//     commit: *address := value                                     the transaction stays open
//     end;    abort label -> invalid                                not restarted: the caller must know
//
//   bump_armed(words, bytes) -> address                            as bump; limits and bytes are below 2^63  [sequence 9]
//     start:  if rseq_cs is not its own descriptor -> arm           the one load that the others spend a store on
//             t := top(slot);  n := t + bytes;  if n > limit(slot) -> full
//     commit: top(slot) := n
//     arm:    behind the end, in no section. base = 0 -> full;  rseq_cs := its own descriptor;  active := 1;  back to start
//     The others store their descriptor before start, each time. It stays in rseq_cs until the kernel next disturbs the thread
//     or the thread runs something else by rseq, so who finds its own there may go on as if it had just stored it: from the
//     comparison on, which is inside, the kernel finds the descriptor and an instruction of its section. A disturbance between
//     start and the comparison restarts the sequence, too, or has cleared rseq_cs before, and the comparison sees that. Whether
//     a kernel also clears it at disturbances elsewhere does not matter: what was read before one is not used, nor is the slot.
//
//   pop_round(words, rounds) -> block                                                              [sequence 7]
//     start:  w := word(slot);  p := place below rounds + w;  if p = 0 -> empty      nothing written
//             popped(slot) := popped(slot) + 1                      a number that nobody decides by but this: see level/slot.h;
//                                                                   an attempt that is aborted behind it has counted, too
//             if popped(slot) = 0 -> empty                          the allocation is due to be sampled: nothing else written
//     commit: word(slot) := w - 8                                   the place keeps its pointer, which is not 0
//
//   push_round(words, rounds, block)                                                               [sequence 8]
//     start:  w := word(slot);  if place below rounds + w = block -> freed_twice     the top round is compared at once
//             if place at rounds + w = 0 -> full                    nothing written
//             place at rounds + w := block                          above the top: nobody reads it. So whoever takes a word
//             away
//     commit: word(slot) := w + 8                                   from another thread reads places after its barrier only
#pragma once

#include <cstddef>
#include <cstdint>

namespace terrace::arch {

/// Offsets from the thread pointer into the calling thread's rseq area: same for all threads.
struct Area {
  std::ptrdiff_t critical_section;  // of rseq_cs
  std::ptrdiff_t slot;              // of mm_cid or cpu_id
};

/// cpu_id lies that far below rseq_cs. It is negative while the area is not registered, and never else.
inline constexpr std::ptrdiff_t cpu_id_below_critical_section = 4;

/// One word per slot: word(slot) = base + slot * stride.
struct Words {
  std::byte* base;
  std::size_t stride;
};

enum class Sequence : std::uint8_t {
  done,
  empty,        // pop_word, pop_round, take_all
  full,         // push_word, push_round, bump
  occupied,     // put_all
  corrupt,      // pop_word: the first block of the word was written after it was freed
  freed_twice,  // push_round
  invalid,      // store, compare_exchange: the transaction is over
  mismatch,     // compare_exchange: *address was another value
  no_slot,      // of no sequence: the thread is not registered, so there was none
};

}  // namespace terrace::arch

extern "C" {
/// Aborts by size class (0: sequences that know no class). Written by the abort handlers, with a locked increment.
extern std::uint64_t terrace_abort_counts[256] __attribute__((visibility("hidden")));
/// Turns of an empty loop at D1 and D2; builds with TERRACE_INJECT only.
extern std::uint32_t terrace_delays[2] __attribute__((visibility("hidden")));
}

#if defined(__x86_64__)
#include "arch/x86_64/sequences.h"
#include "arch/x86_64/transaction.h"
#elif defined(__aarch64__)
#include "arch/aarch64/sequences.h"
#include "arch/aarch64/transaction.h"
#else
#error "Terrace knows x86-64 and aarch64"
#endif
