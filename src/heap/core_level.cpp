// SPDX-License-Identifier: MIT OR Apache-2.0
#include "heap/core_level.h"

#include "os/metadata.h"

namespace terrace::heap {

using level::Magazine, level::Slot;

bool CoreLevel::open(const percpu::Ladder& ladder, unsigned slots, level::ThreadSlots<Slot>::Drain drain) noexcept {
  if (slot_count() != 0) return true;
  auto* const memory = os::map_metadata<Slot>(os::Metadata::levels, slots);
  if (memory == nullptr) return false;
  PerSlot::open(ladder, memory, slots);
  of_threads().open(drain);
  return true;
}

void* CoreLevel::pop(Slot& chosen, HomeClass h) noexcept {
  expect_no_lock();
  if (has_sequences()) {
    void* block = nullptr;
    const arch::Sequence r = arch::pop_round<level::words_offset, level::popped_offset>(area(), bytes(), level::slot_size,
                                                                                        level::origin(), index(h), block);
    return r == arch::Sequence::done ? block : nullptr;
  }
  return plainly(chosen, [&](Slot& slot) noexcept -> void* {
    Magazine m = magazines().of_word(slot.words[index(h)]);
    if (m.count() == 0) return nullptr;
    void* const block = m.pop();
    set(slot.words[index(h)], m.word());
    set(slot.popped[index(h)], slot.popped[index(h)] + 1);
    return block;
  });
}

arch::Sequence CoreLevel::push(Slot& chosen, HomeClass h, void* block) noexcept {
  expect_no_lock();
  if (has_sequences())
    return arch::push_round<level::slot_shift, level::words_offset>(area(), bytes(), level::origin(), index(h), block);
  return plainly(chosen, [&](Slot& slot) noexcept {
    if (level::top_round(slot.words[index(h)]) == address_of(block)) return arch::Sequence::freed_twice;
    Magazine m = magazines().of_word(slot.words[index(h)]);
    if (!m || !m.has_room()) return arch::Sequence::full;
    m.push(block);
    set(slot.words[index(h)], m.word());
    return arch::Sequence::done;
  });
}

void CoreLevel::empty_words(Slot& slot, HomeClass h) noexcept {
  slabs_.empty(take_word(slot, h));
  slabs_.empty(take_previous(slot, h));
}

void CoreLevel::empty(Slot& slot, const ChainWord* held) noexcept {
  for (std::size_t h = 0; h < level::slot_words; ++h) {
    for (const level::MagazineWord w : {held[h], held[level::first_previous + h]}) {
      if (w != level::no_magazine) slabs_.empty(magazines().of_word(w));
    }
  }
  release_caps(slot);
}

}  // namespace terrace::heap
