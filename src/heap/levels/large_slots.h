// SPDX-License-Identifier: MIT OR Apache-2.0
// Large blocks that were just freed are kept for the next request: a program that allocates and frees a buffer in turn gets the
// same one, without a lock, a list or a fault. A slot has a word for each doubling of the size up to 4 MiB, and each keeps the
// block that was freed last. The displaced block becomes a free span, and so does a kept block that does not fit a request.
//
// A word may hold a block only when the bytes that it may reach at most are granted (Slot::large_granted). Grants count in the
// surplus in full, whether there is a block or not, so that keeping one and taking it need not look at the bound. A grant is
// not given when that would bring the surplus beyond half of the bound. (A thread that is moved between the look at its slot
// and the store leaves its block where perhaps nothing is granted; it goes with that slot's next round.)
#pragma once

#include "heap/large/large.h"
#include "heap/levels/core_level.h"

namespace terrace::heap {

class LargeSlots {
 public:
  constexpr LargeSlots(CoreLevel& core, Large& large, Maintenance& maintenance) noexcept
      : core_(core), large_(large), maintenance_(maintenance) {}
  /// A block that was kept and is large enough, or null.
  void* take(std::size_t size, bool zeroed) noexcept;
  /// no: the block stays the caller's. In place of another: that one became a free span, and the caller then does maintenance.
  enum class Kept : std::uint8_t { no, yes, in_place_of_another };
  Kept keep(void* p) noexcept;

  /// Makes free spans of the blocks in the large words of a slot, and sets its grants to 0.
  void empty(level::Slot& slot, const Word* held) noexcept;
  /// The same of the slot that the caller is on, whose words still hold it.
  void empty_own(level::Slot& slot) noexcept;
  /// The same of one word, and of the grants when all were emptied.
  void give_up(Word block) noexcept;
  void release_grants(level::Slot& slot) noexcept;
  /// Bytes that slots may keep.
  std::uint64_t granted() const noexcept { return granted_.read(); }

  /// The invariant that does not hold, in words; null when all do. For tests, while no other thread is inside.
  const char* check() noexcept;

 private:
  bool grant(level::Slot& slot, unsigned word) noexcept;

  CoreLevel& core_;
  Large& large_;
  Maintenance& maintenance_;
  SharedCounter granted_;
};

}  // namespace terrace::heap
