// SPDX-License-Identifier: MIT OR Apache-2.0
#include "heap/core.h"

#include "base/report.h"
#include "heap/key.h"

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
  os::Mutex* mutex_;
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
      std::int32_t slot = arch::load_slot(area_.slot);
      if (slot < 0) {  // libc registered nobody, and this thread has not registered itself
        if (!area_is_ours_ || !os::register_rseq_for_this_thread()) return nullptr;
        slot = arch::load_slot(area_.slot);
      }
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

std::size_t Core::home_of(const Slot& slot) const noexcept {
  return rung_ == Rung::thread ? slot.owner & 0x7fffffff : static_cast<std::size_t>(&slot - slots_);
}

void* Core::pop(Slot& chosen, SizeClass c) noexcept {
  void* block = nullptr;
  if (percpu::has_sequences(rung_)) {
    const arch::Sequence r = arch::pop<level::slot_shift, level::allocate_offset>(area_, slots_bytes_, index(c), block);
    if (r == arch::Sequence::corrupt) report_write_after_free("malloc", chain::first(take_allocate(chosen, c)));
    if (r != arch::Sequence::done) return nullptr;
  } else {
    const SlotGuard guard(chosen, rung_);
    const ChainWord w = chosen.allocate[index(c)];
    if (!chain::has_blocks(w)) return nullptr;
    block = chain::first(w);
    if (!chain::intact(w)) report_write_after_free("malloc", block);
    set(chosen.allocate[index(c)], chain::rest(w));
  }
  static_cast<std::uint64_t*>(block)[1] = 0;
  return block;
}

arch::Sequence Core::push(Slot& chosen, HomeClass h, void* block, std::uint64_t key_base) noexcept {
  if (percpu::has_sequences(rung_)) {
    return arch::push<level::slot_shift, level::free_offset, level::cap_offset>(area_, slots_bytes_, index(h), block, key_base);
  }
  const SlotGuard guard(chosen, rung_);
  const ChainWord w = chosen.free[index(h)];
  if (static_cast<const std::uint64_t*>(block)[1] == key_of(block, key_base)) return arch::Sequence::freed_twice;
  if (chain::count(w) >= __atomic_load_n(&chosen.cap[index(h)], __ATOMIC_RELAXED)) return arch::Sequence::full;
  set(chosen.free[index(h)], chain::pushed(w, block, key_of(block, key_base)));
  return arch::Sequence::done;
}

// The words that are to their slots what `word` is to `slot`.
arch::Words Core::words_like(const Slot& slot, const ChainWord& word) const noexcept {
  const auto offset = reinterpret_cast<const std::byte*>(&word) - reinterpret_cast<const std::byte*>(&slot);
  return {.base = slots_bytes_ + offset, .stride = level::slot_size};
}

ChainWord Core::take(Slot& chosen, ChainWord& word) noexcept {
  if (percpu::has_sequences(rung_)) {
    ChainWord taken = chain::empty;
    return arch::take_all(area_, words_like(chosen, word), taken) == arch::Sequence::done ? taken : chain::empty;
  }
  const SlotGuard guard(chosen, rung_);
  const ChainWord taken = word;
  if (!chain::has_blocks(taken)) return chain::empty;
  set(word, chain::empty);
  return taken;
}

ChainWord Core::take_allocate(Slot& chosen, SizeClass c) noexcept { return take(chosen, chosen.allocate[index(c)]); }
ChainWord Core::take_free(Slot& chosen, HomeClass h) noexcept { return take(chosen, chosen.free[index(h)]); }

bool Core::put(Slot& chosen, ChainWord& word, ChainWord blocks) noexcept {
  if (percpu::has_sequences(rung_)) return arch::put_all(area_, words_like(chosen, word), blocks) == arch::Sequence::done;
  const SlotGuard guard(chosen, rung_);
  if (word != chain::empty) return false;
  set(word, blocks);
  return true;
}

bool Core::put_allocate(Slot& chosen, SizeClass c, ChainWord blocks) noexcept {
  return put(chosen, chosen.allocate[index(c)], blocks);
}
bool Core::put_free(Slot& chosen, HomeClass h, ChainWord blocks) noexcept { return put(chosen, chosen.free[index(h)], blocks); }

}  // namespace terrace::heap
