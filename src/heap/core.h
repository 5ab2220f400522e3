// SPDX-License-Identifier: MIT OR Apache-2.0
// The words of the calling thread's slot on every rung of the ladder: sequences, plain code under the slot's lock, or plain
// code on the thread's own slot. Slow paths only; the fast paths of the rungs with sequences are in fast_path.h.
#pragma once

#include "base/assert.h"
#include "heap/magazines.h"
#include "heap/size_class.h"
#include "heap/thread_slots.h"
#include "level/slot.h"
#include "percpu/ladder.h"

namespace terrace::heap {

class Core {
 public:
  /// `slots` points to slot 0 of `count`.
  void open(const percpu::Ladder& ladder, level::Slot* slots, unsigned count, ThreadSlots& threads,
            const Magazines& magazines) noexcept;

  percpu::Rung rung() const noexcept { return rung_; }
  unsigned slot_count() const noexcept { return count_; }
  level::Slot& slot(unsigned i) const noexcept { return slots_[i]; }
  /// Where the calling thread is, chosen once per operation; null: the thread may not use the level (its exit has begun, it is
  /// a vfork child, or it is not registered with rseq).
  level::Slot* current() noexcept {
    if (percpu::has_sequences(rung_) && !ThreadSlots::closed() && arch::registered(area_)) [[likely]] {
      const std::int32_t slot = arch::load_slot(area_.slot);
      if (static_cast<std::uint32_t>(slot) < count_) [[likely]]
        return &slots_[slot];
    }
    return current_slow();
  }
  std::size_t number_of(const level::Slot& slot) const noexcept {
    if (rung_ == percpu::Rung::thread) return slot.owner & 0x7fffffff;
    return static_cast<std::size_t>(&slot - slots_);
  }
  /// The number that stands for a slot where blocks have a home.
  std::size_t home_of(const level::Slot& slot) const noexcept {
    const std::size_t number = number_of(slot);
    return homes_are_slots() ? number : 1 + number % (max_homes - 1);
  }
  /// Else there are more slots than homes, and slots share homes; none has home 0, whose words malloc pops from then.
  bool homes_are_slots() const noexcept { return count_ <= max_homes || !percpu::has_sequences(rung_); }

  // The operations below work on the slot that the thread is on at that moment; `chosen` is used on the rungs where it can not
  // change.
  /// From a word to the program, and counted.
  void* pop(level::Slot& chosen, HomeClass h) noexcept;
  arch::Sequence push(level::Slot& chosen, HomeClass h, void* block) noexcept;
  /// The loaded magazine, empty or not, is the caller's then.
  level::Magazine take_word(level::Slot& chosen, HomeClass h) noexcept {
    return magazines_->of_word(take(chosen, chosen.words[index(h)]));
  }
  /// False: there is one, or the slot is stopped.
  bool put_word(level::Slot& chosen, HomeClass h, level::Magazine m) noexcept {
    return put(chosen, chosen.words[index(h)], m.word());
  }
  level::Magazine take_previous(level::Slot& chosen, HomeClass h) noexcept {
    return magazines_->of_word(take(chosen, chosen.previous[index(h)]));
  }
  bool put_previous(level::Slot& chosen, HomeClass h, level::Magazine m) noexcept {
    return put(chosen, chosen.previous[index(h)], m.word());
  }
  ChainWord take_large(level::Slot& chosen, unsigned word) noexcept { return take(chosen, chosen.large[word]); }
  bool put_large(level::Slot& chosen, unsigned word, ChainWord block) noexcept {
    return put(chosen, chosen.large[word], block);
  }

 private:
  // The words that are to their slots what `word` is to `slot`.
  arch::Words words_like(const level::Slot& slot, const ChainWord& word) const noexcept {
    const auto offset = reinterpret_cast<const std::byte*>(&word) - reinterpret_cast<const std::byte*>(&slot);
    return {.base = slots_bytes_ + offset, .stride = level::slot_size};
  }
  level::Slot* current_slow() noexcept;
  static void expect_no_lock() noexcept {
    TERRACE_ASSERT(!os::LockOrder::holds_within(os::Rank::maintenance), "a lock is held while a sequence runs");
  }
  ChainWord take(level::Slot& chosen, ChainWord& word) noexcept {
    expect_no_lock();
    if (!percpu::has_sequences(rung_)) [[unlikely]]
      return take_plainly(chosen, word);
    ChainWord taken = chain::empty;
    return arch::take_all(area_, words_like(chosen, word), taken) == arch::Sequence::done ? taken : chain::empty;
  }
  bool put(level::Slot& chosen, ChainWord& word, ChainWord blocks) noexcept {
    expect_no_lock();
    TERRACE_ASSERT(blocks >> 8 != 0, "I1: a word gets what is neither magazine nor block");
    if (!percpu::has_sequences(rung_)) [[unlikely]]
      return put_plainly(chosen, word, blocks);
    return arch::put_all(area_, words_like(chosen, word), blocks) == arch::Sequence::done;
  }
  ChainWord take_plainly(level::Slot& chosen, ChainWord& word) const noexcept;
  bool put_plainly(level::Slot& chosen, ChainWord& word, ChainWord blocks) const noexcept;

  percpu::Rung rung_ = percpu::Rung::thread;
  bool area_is_ours_ = false;
  arch::Area area_{};
  level::Slot* slots_ = nullptr;
  std::byte* slots_bytes_ = nullptr;  // the same, for the sequences
  unsigned count_ = 0;
  ThreadSlots* threads_ = nullptr;
  const Magazines* magazines_ = nullptr;
};

}  // namespace terrace::heap
