// SPDX-License-Identifier: MIT OR Apache-2.0
#include "heap/core.h"

#include "base/report.h"

namespace terrace::heap {
namespace {

using level::Magazine, level::Slot;
using percpu::Rung;

// Plain code needs the lock on the getcpu rung only; on the thread rung nobody else writes the slot.
class SlotGuard {
 public:
  SlotGuard(Slot& slot, Rung rung) noexcept : mutex_(rung == Rung::getcpu ? &slot.lock : nullptr) {
    if (mutex_ != nullptr) mutex_->lock();
  }
  ~SlotGuard() {
    if (mutex_ != nullptr) mutex_->unlock();
  }
  SlotGuard(const SlotGuard&) = delete;
  SlotGuard& operator=(const SlotGuard&) = delete;

 private:
  os::RankedMutex<os::Rank::slot>* mutex_;
};

void set(ChainWord& word, ChainWord value) noexcept { __atomic_store_n(&word, value, __ATOMIC_RELAXED); }

}  // namespace

void Core::open(const percpu::Ladder& ladder, Slot* slots, unsigned count, ThreadSlots& threads,
                const Magazines& magazines) noexcept {
  rung_ = ladder.rung;
  area_is_ours_ = ladder.area_is_ours;
  area_ = ladder.area;
  slots_ = slots;
  slots_bytes_ = reinterpret_cast<std::byte*>(slots);
  count_ = count;
  threads_ = &threads;
  magazines_ = &magazines;
}

Slot* Core::current_slow() noexcept {
  switch (rung_) {
    case Rung::mm_cid:
    case Rung::cpu_id: {
      if (ThreadSlots::closed()) return nullptr;
      if (!arch::registered(area_) && !(area_is_ours_ && os::register_rseq_for_this_thread())) return nullptr;
      const std::int32_t slot = arch::load_slot(area_.slot);
      return slot >= 0 && static_cast<unsigned>(slot) < count_ ? &slots_[slot] : nullptr;
    }
    case Rung::getcpu: {
      const int cpu = os::current_cpu();
      return cpu >= 0 ? &slots_[static_cast<unsigned>(cpu) % count_] : nullptr;
    }
    case Rung::thread: return threads_->mine();
  }
  return nullptr;
}

void* Core::pop(Slot& chosen, HomeClass h) noexcept {
  using level::popped_offset, level::slot_size, level::words_offset;
  expect_no_lock();
  if (percpu::has_sequences(rung_)) {
    void* block = nullptr;
    const arch::Sequence r =
        arch::pop_round<words_offset, popped_offset>(area_, slots_bytes_, slot_size, level::origin(), index(h), block);
    return r == arch::Sequence::done ? block : nullptr;
  }
  const SlotGuard guard(chosen, rung_);
  Magazine m = magazines_->of_word(chosen.words[index(h)]);
  if (m.count() == 0) return nullptr;
  void* const block = m.pop();
  set(chosen.words[index(h)], m.word());
  set(chosen.popped[index(h)], chosen.popped[index(h)] + 1);
  return block;
}

arch::Sequence Core::push(Slot& chosen, HomeClass h, void* block) noexcept {
  expect_no_lock();
  if (percpu::has_sequences(rung_))
    return arch::push_round<level::slot_shift, level::words_offset>(area_, slots_bytes_, level::origin(), index(h), block);
  const SlotGuard guard(chosen, rung_);
  if (level::top_round(chosen.words[index(h)]) == address_of(block)) return arch::Sequence::freed_twice;
  Magazine m = magazines_->of_word(chosen.words[index(h)]);
  if (!m || !m.has_room()) return arch::Sequence::full;
  m.push(block);
  set(chosen.words[index(h)], m.word());
  return arch::Sequence::done;
}

ChainWord Core::take_plainly(Slot& chosen, ChainWord& word) const noexcept {
  const SlotGuard guard(chosen, rung_);
  const ChainWord taken = word;
  if (!chain::has_blocks(taken)) return chain::empty;
  set(word, chain::empty);
  return taken;
}

bool Core::put_plainly(Slot& chosen, ChainWord& word, ChainWord blocks) const noexcept {
  const SlotGuard guard(chosen, rung_);
  if (word != chain::empty) return false;
  set(word, blocks);
  return true;
}

}  // namespace terrace::heap
