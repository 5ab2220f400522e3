// SPDX-License-Identifier: MIT OR Apache-2.0
// The words of the calling thread's slot on every rung of the ladder: sequences, plain code under the slot's lock, or plain
// code on the thread's own slot. Slow paths only; the fast paths of the rungs with sequences are in fast_path.h.
#pragma once

#include "heap/size_class.h"
#include "heap/thread_slots.h"
#include "level/slot.h"
#include "percpu/ladder.h"

namespace terrace::heap {

class Core {
 public:
  /// `slots` points to slot 0 of `count`.
  void open(const percpu::Ladder& ladder, level::Slot* slots, unsigned count, ThreadSlots& threads) noexcept;

  percpu::Rung rung() const noexcept { return rung_; }
  unsigned slot_count() const noexcept { return count_; }
  level::Slot& slot(unsigned i) const noexcept { return slots_[i]; }
  /// Where the calling thread is, chosen once per operation; null: the thread may not use the level (its exit has begun, or it
  /// is a vfork child).
  level::Slot* current() noexcept {
    if (percpu::has_sequences(rung_) && !ThreadSlots::closed()) [[likely]] {
      const std::int32_t slot = arch::load_slot(area_.slot);
      if (static_cast<std::uint32_t>(slot) < count_) [[likely]]
        return &slots_[slot];
    }
    return current_slow();
  }
  /// The number that stands for a slot where blocks have a home.
  std::size_t home_of(const level::Slot& slot) const noexcept;

  // The operations below work on the slot that the thread is on at that moment; `chosen` is used on the rungs where it can not
  // change.
  void* pop(level::Slot& chosen, SizeClass c) noexcept;
  arch::Sequence push(level::Slot& chosen, HomeClass h, void* block, std::uint64_t key_base) noexcept;
  ChainWord take_allocate(level::Slot& chosen, SizeClass c) noexcept;
  ChainWord take_free(level::Slot& chosen, HomeClass h) noexcept;
  bool put_allocate(level::Slot& chosen, SizeClass c, ChainWord blocks) noexcept;
  bool put_free(level::Slot& chosen, HomeClass h, ChainWord blocks) noexcept;

 private:
  arch::Words words_like(const level::Slot& slot, const ChainWord& word) const noexcept;
  level::Slot* current_slow() noexcept;
  ChainWord take(level::Slot& chosen, ChainWord& word) noexcept;
  bool put(level::Slot& chosen, ChainWord& word, ChainWord blocks) noexcept;

  percpu::Rung rung_ = percpu::Rung::thread;
  bool area_is_ours_ = false;
  arch::Area area_{};
  level::Slot* slots_ = nullptr;
  std::byte* slots_bytes_ = nullptr;  // the same, for the sequences
  unsigned count_ = 0;
  ThreadSlots* threads_ = nullptr;
};

}  // namespace terrace::heap
