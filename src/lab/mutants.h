// SPDX-License-Identifier: MIT OR Apache-2.0
// The places of a refill that can be broken on purpose, to prove that the tests would notice (tests/lab). A normal build has
// none of them: each is a false constant. A mutant is chosen by defining TERRACE_LAB_MUTANT to the name of one.
//
// Delay points make preemptions happen between two steps of a refill; builds with TERRACE_INJECT only. As in the sequences, 0
// is where something is known and not done yet, 1 where it is done by half.
#pragma once

#if defined(TERRACE_INJECT)
#include "arch/sequences.h"
#endif

namespace terrace::lab {

enum class Mutant {
  none,
  trusts_the_section,          // restartable: what reads as valid after the call of source() is not reopened
  reopens_over_other_words,    // restartable: after an interruption, top and end may be others than before
  reopens_on_another_slot,     // restartable: and the slot, too
  closes_by_plain_store,       // restartable: top is closed without a look at the section
  installs_the_sidelined,      // restartable: a buffer that is put aside is used all the same
  loses_the_sidelined,         // restartable: or forgotten
  drains_without_barrier,      // restartable: another core's buffer is taken while a sequence may be about to commit to it
  drains_without_second_look,  // restartable: what such a sequence has committed meanwhile is not looked at
  closes_whatever_is_there,    // cas: top is closed without comparing
  takes_by_plain_store,        // cas: top is moved without comparing
  stays_closed,                // cas: a refill that has got nothing leaves the buffer closed
  end_after_top,               // both: the buffer is opened before its end is known
  leaves_tails,                // both: a tail is not filled
  leaves_short_tails,          // both: buffers are used to their last byte
  joins_regions,               // both: ranges that meet at a boundary are joined
};

#if defined(TERRACE_LAB_MUTANT)
inline constexpr Mutant built = Mutant::TERRACE_LAB_MUTANT;
#else
inline constexpr Mutant built = Mutant::none;
#endif
constexpr bool is(Mutant m) noexcept { return built == m; }

#if defined(TERRACE_INJECT)
inline void delay(unsigned which) noexcept {
  for (std::uint32_t n = __atomic_load_n(&terrace_delays[which], __ATOMIC_RELAXED); n != 0; --n) __asm__ volatile("");
}
#else
constexpr void delay(unsigned) noexcept {}
#endif

}  // namespace terrace::lab
