// SPDX-License-Identifier: MIT OR Apache-2.0
// The core level of any hierarchy: one T for each slot, whatever T is, and words in it. The rung decides how a word is changed:
// by a restartable sequence, by plain code under the slot's lock, or by plain code in a thread's own slot. Only a thread on the
// slot changes its words, or one that has stopped them.
//
// `T` of blocks has magazines and goes on living without its thread (thread_slots.h); `T` of ranges has a top and an end.
#pragma once

#include "arch/word.h"
#include "base/assert.h"
#include "base/attributes.h"
#include "base/described.h"
#include "level/closed.h"
#include "level/thread_slots.h"
#include "os/membarrier.h"
#include "percpu/ladder.h"
#include "percpu/locked_slots.h"
#include "percpu/stop_slot.h"
#include "percpu/transaction.h"

#include <span>

namespace terrace::level {

/// A word that its owner writes by plain stores inside sequences and others read.
inline Word peek(const Word& word) noexcept {
  return __atomic_load_n(&word, __ATOMIC_RELAXED);  // relaxed: the value may be stale at once
}

template <class T>
concept HasThread = requires(T& t) {
  t.of_thread.owner;
};

struct NoThreads {};
template <class T>
struct ThreadSlotsOf {
  using Type = NoThreads;
};
template <HasThread T>
struct ThreadSlotsOf<T> {
  using Type = ThreadSlots<T>;
};

template <class T>
class PerSlot {
 public:
  /// `slots` points to slot 0 of `count`, zeroed.
  void open(const percpu::Ladder& ladder, T* slots, unsigned count) noexcept {
    rung_ = ladder.rung;
    area_is_ours_ = ladder.area_is_ours;
    area_ = ladder.area;
    slots_ = slots;
    count_ = count;
  }

  percpu::Rung rung() const noexcept { return rung_; }
  bool has_sequences() const noexcept { return percpu::has_sequences(rung_); }
  const arch::Area& area() const noexcept { return area_; }
  unsigned slot_count() const noexcept { return count_; }
  T& slot(unsigned i) const noexcept { return slots_[i]; }
  std::byte* bytes() const noexcept { return reinterpret_cast<std::byte*>(slots_); }
  typename ThreadSlotsOf<T>::Type& of_threads() noexcept { return threads_; }

  /// Where the calling thread is, chosen once per operation; null: the thread may not use the level (its exit has begun, it is
  /// a vfork child or a companion, or it is not registered with rseq).
  T* current() noexcept {
    if (has_sequences() && !Closed::to_this_thread() && arch::registered(area_)) [[likely]] {
      const std::int32_t slot = arch::load_slot(area_.slot);
      if (static_cast<std::uint32_t>(slot) < count_) [[likely]]
        return &slots_[slot];
    }
    return current_slow();
  }
  unsigned number_of(const T& slot) const noexcept {
    if constexpr (HasThread<T>) {
      if (rung_ == percpu::Rung::thread) return slot.of_thread.number();
    }
    return static_cast<unsigned>(&slot - slots_);
  }
  /// Calls body(slot) for every slot there is, of threads, too.
  template <class Body>
  void for_each(Body body) {
    for (unsigned i = 0; i < count_; ++i) body(slots_[i]);
    if constexpr (HasThread<T>) {
      for (T* slot = threads_.all(); slot != nullptr; slot = slot->of_thread.next) body(*slot);
    }
  }

  /// One word of each slot; where a slot is a thread's, of the chosen one.
  struct Place {
    arch::Words words;
    Word* of_chosen;
  };
  /// What `word` is to `chosen`, if the same word of the next slot lies `stride` bytes further on.
  TERRACE_INLINE Place place_of(T& chosen, Word& word, std::size_t stride = sizeof(T)) const noexcept {
    return {.words = {.base = reinterpret_cast<std::byte*>(&word) - number_of(chosen) * stride, .stride = stride},
            .of_chosen = &word};
  }

  // The operations below work on the slot that the thread is on at that moment; `chosen` is used where it can not change.
  /// The word is 0 then.
  TERRACE_INLINE Word take(T& chosen, Word& word) const noexcept { return take(chosen, place_of(chosen, word)); }
  TERRACE_INLINE Word take(T& chosen, const Place& place) const noexcept {
    expect_no_lock();
    Word taken = 0;
    if (has_sequences()) [[likely]]
      return arch::take_all(area_, place.words, taken) == arch::Sequence::done ? taken : 0;
    return plainly(chosen, [&](T& slot) {
      Word& w = word_at(slot, place);
      const Word held = w;
      if (held != 0) set(w, 0);
      return held;
    });
  }
  /// False: the word is not 0, or the slot is stopped.
  TERRACE_INLINE bool put(T& chosen, Word& word, Word value) const noexcept {
    return put(chosen, place_of(chosen, word), value);
  }
  TERRACE_INLINE bool put(T& chosen, const Place& place, Word value) const noexcept {
    expect_no_lock();
    TERRACE_ASSERT(names_something(value), "I1: a word gets what is neither magazine nor block");
    if (has_sequences()) [[likely]]
      return arch::put_all(area_, place.words, value) == arch::Sequence::done;
    return plainly(chosen, [&](T& slot) {
      Word& w = word_at(slot, place);
      if (w != 0) return false;
      set(w, value);
      return true;
    });
  }
  /// From the first word of the slot, a top, which ends at the second. False: there are fewer bytes.
  bool bump(std::size_t bytes, std::uint64_t& start) const noexcept {
    const arch::Words words{.base = this->bytes(), .stride = sizeof(T)};
    if (has_sequences() && arch::registered(area_)) [[likely]]
      return arch::bump(area_, words, bytes, start) == arch::Sequence::done;
    return percpu::bump(words, bytes, start) == arch::Sequence::done;
  }
  /// Without sequences: body(slot), while no other thread writes the slot's words. Not inlined, so that its code does not slow
  /// the paths with sequences.
  template <class Body>
  __attribute__((noinline)) auto plainly(T& chosen, Body body) const noexcept {
    if (HasThread<T> && rung_ == percpu::Rung::thread) return body(chosen);
    return percpu::with_some_slot(number_of(chosen), count_, [&](unsigned i) noexcept { return body(slots_[i]); });
  }
  static void set(Word& word, Word value) noexcept { __atomic_store_n(&word, value, __ATOMIC_RELAXED); }

  /// Whether words may be taken from slots that the thread is not on: not in a sandbox that was entered without the barrier.
  bool may_stop() const noexcept { return !has_sequences() || os::may_restart_sequences(); }
  /// Moves the content of some words of a slot to the caller and sets them to 0. A thread's slot: by that thread, or after its
  /// end. One caller at a time for each slot. False: the barrier failed, and nothing was taken.
  bool take_words(T& chosen, std::span<Word> words, Word* held) const noexcept {
    if (has_sequences()) {
      if (!percpu::stop_words(words, held)) return false;
      percpu::start_words(words);
      return true;
    }
    const auto take_plainly = [=] {
      for (std::size_t i = 0; i < words.size(); ++i) {  // few hold blocks, and each ending thread runs this
        held[i] = peek(words[i]);
        if (held[i] != 0) set(words[i], 0);
      }
      return true;
    };
    if (rung_ == percpu::Rung::thread) return take_plainly();
    const percpu::SlotLock lock(percpu::locked_slot(number_of(chosen)));
    return lock.ours() && take_plainly();
  }

  /// In a forked child. If a thread of the parent was stopping some words, their content is lost, but the words remain usable.
  static void start_in_child(std::span<Word> words) noexcept {
    for (Word& word : words) {
      if (word == stopped_word) word = 0;
    }
  }

 protected:
  static void expect_no_lock() noexcept {
    TERRACE_ASSERT(!os::LockOrder::holds_within(os::Rank::maintenance), "a lock is held while a sequence runs");
  }

 private:
  friend struct introspect::Layout;
  // Without sequences, of a slot that nobody else works on.
  Word& word_at(const T& slot, const Place& place) const noexcept {
    if (rung_ == percpu::Rung::thread) return *place.of_chosen;
    return *reinterpret_cast<Word*>(place.words.base + number_of(slot) * place.words.stride);
  }
  __attribute__((noinline)) T* current_slow() noexcept {
    if (has_sequences()) {
      if (Closed::to_this_thread()) return nullptr;
      if (!arch::registered(area_) && !(area_is_ours_ && os::register_rseq_for_this_thread())) return nullptr;
      const std::int32_t slot = arch::load_slot(area_.slot);
      return slot >= 0 && static_cast<unsigned>(slot) < count_ ? &slots_[slot] : nullptr;
    }
    if constexpr (HasThread<T>) {
      if (rung_ == percpu::Rung::thread) return threads_.mine();
    }
    if (os::thread_state().companion) return nullptr;
    const int cpu = os::current_cpu();
    return cpu >= 0 ? &slots_[static_cast<unsigned>(cpu) % count_] : nullptr;
  }

  percpu::Rung rung_ = percpu::Rung::thread;
  bool area_is_ours_ = false;
  arch::Area area_{};
  T* slots_ = nullptr;
  unsigned count_ = 0;
  typename ThreadSlotsOf<T>::Type threads_;
};

}  // namespace terrace::level
