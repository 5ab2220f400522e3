// SPDX-License-Identifier: MIT OR Apache-2.0
#include "heap/core.h"

#include "base/report.h"

namespace terrace::heap {
namespace {

using level::Slot;
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

void Core::open(const percpu::Ladder& ladder, Slot* slots, unsigned count, ThreadSlots& threads) noexcept {
  rung_ = ladder.rung;
  area_is_ours_ = ladder.area_is_ours;
  area_ = ladder.area;
  slots_ = slots;
  slots_bytes_ = reinterpret_cast<std::byte*>(slots);
  count_ = count;
  threads_ = &threads;
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
  void* block = nullptr;
  if (percpu::has_sequences(rung_)) {
    const arch::Sequence r = arch::pop<words_offset, popped_offset>(area_, slots_bytes_, slot_size, index(h), block);
    if (r == arch::Sequence::corrupt) report_write_after_free("malloc", chain::first(take_word(chosen, h)));
    if (r != arch::Sequence::done) return nullptr;
  } else {
    const SlotGuard guard(chosen, rung_);
    const ChainWord w = chosen.words[index(h)];
    if (!chain::has_blocks(w)) return nullptr;
    block = chain::first(w);
    if (!chain::intact(w)) report_write_after_free("malloc", block);
    set(chosen.words[index(h)], chain::rest(w));
    set(chosen.popped[index(h)], chosen.popped[index(h)] + 1);
  }
  static_cast<std::uint64_t*>(block)[1] = 0;
  return block;
}

arch::Sequence Core::push(Slot& chosen, HomeClass h, void* block) noexcept {
  expect_no_lock();
  if (percpu::has_sequences(rung_)) {
    return arch::push<level::slot_shift, level::words_offset, level::cap_offset>(area_, slots_bytes_, index(h), block);
  }
  const SlotGuard guard(chosen, rung_);
  const ChainWord w = chosen.words[index(h)];
  if (static_cast<const std::uint64_t*>(block)[1] == chain::key(block)) return arch::Sequence::freed_twice;
  if (chain::count(w) >= __atomic_load_n(&chosen.cap[index(h)], __ATOMIC_RELAXED)) return arch::Sequence::full;
  set(chosen.words[index(h)], chain::pushed(w, block));
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
