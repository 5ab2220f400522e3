// SPDX-License-Identifier: MIT OR Apache-2.0
#include "heap/levels/core_level.h"

#include "os/metadata.h"

namespace terrace::heap {

using level::Magazine, level::ObjectWords, level::Slot;

bool CoreLevel::open(const percpu::Ladder& ladder, unsigned slots, level::ThreadSlots<Slot>::Drain drain) noexcept {
  if (slot_count() != 0) return true;
  auto* const memory = os::map_metadata<Slot>(os::Metadata::levels, slots);
  if (memory == nullptr) return false;
  PerSlot::open(ladder, memory, slots);
  of_threads().open(drain);
  return true;
}

bool CoreLevel::open_objects(unsigned chunk) noexcept {
  if (rung() != percpu::Rung::thread && objects_[chunk] == nullptr)
    objects_[chunk] = os::map_metadata<ObjectWords>(os::Metadata::levels, slot_count());
  return rung() == percpu::Rung::thread || objects_[chunk] != nullptr;
}

ObjectWords* CoreLevel::known_words(Slot& slot, unsigned chunk) const noexcept {
  if (rung() != percpu::Rung::thread) return objects_[chunk] + number_of(slot);
  // acquire, pairs with object_words(): of another thread's slot the words are looked at.
  ObjectWords** const table = __atomic_load_n(&slot.of_objects, __ATOMIC_ACQUIRE);
  return table == nullptr ? nullptr : __atomic_load_n(&table[chunk], __ATOMIC_ACQUIRE);
}

// Where slots are threads', by the thread itself.
ObjectWords* CoreLevel::make_object_words(Slot& slot, unsigned chunk) noexcept {
  if (slot.of_objects == nullptr) {
    auto** const table = os::map_metadata<ObjectWords*>(os::Metadata::levels, level::most_object_chunks);
    if (table == nullptr) return nullptr;
    __atomic_store_n(&slot.of_objects, table, __ATOMIC_RELEASE);
  }
  ObjectWords*& words = slot.of_objects[chunk];
  if (words == nullptr) {
    auto* const fresh = os::map_metadata<ObjectWords>(os::Metadata::levels, 1);
    if (fresh == nullptr) return nullptr;
    __atomic_store_n(&words, fresh, __ATOMIC_RELEASE);
  }
  return words;
}

std::byte* CoreLevel::object_base(HomeClass h) const noexcept {
  auto* const words = reinterpret_cast<std::byte*>(objects_[ObjectClasses::chunk(h)]);
  return words + ObjectClasses::within(h) * sizeof(Word) - word_of_objects * sizeof(Word);
}

void* CoreLevel::pop_by_sequence(HomeClass h) noexcept {
  void* block = nullptr;
  const arch::Sequence r = is_object(h)
                               ? arch::pop_round<level::object_words_offset, level::object_popped_offset>(
                                     area(), object_base(h), level::object_words_size, level::origin(), word_of_objects, block)
                               : arch::pop_round<level::words_offset, level::popped_offset>(area(), bytes(), level::slot_size,
                                                                                            level::origin(), index(h), block);
  return r == arch::Sequence::done ? block : nullptr;
}

arch::Sequence CoreLevel::push_by_sequence(HomeClass h, void* block) noexcept {
  if (!is_object(h))
    return arch::push_round<level::slot_shift, level::words_offset>(area(), bytes(), level::origin(), index(h), block);
  return arch::push_round<level::object_words_shift, level::object_words_offset>(area(), object_base(h), level::origin(),
                                                                                 word_of_objects, block);
}

// Of objects it requires the chunk's words: current_for().
void* CoreLevel::pop(Slot& chosen, HomeClass h) noexcept {
  expect_no_lock();
  if (has_sequences()) return pop_by_sequence(h);
  return plainly(chosen, [&](Slot& slot) noexcept -> void* {
    const OfClass c = of_class(slot, h);
    Magazine m = magazines().of_word(c.word);
    if (m.count() == 0) return nullptr;
    set(c.popped, c.popped + 1);
    if (c.popped == 0) return nullptr;
    void* const block = m.pop();
    set(c.word, m.word());
    return block;
  });
}

arch::Sequence CoreLevel::push(Slot& chosen, HomeClass h, void* block) noexcept {
  expect_no_lock();
  if (has_sequences()) return push_by_sequence(h, block);
  return plainly(chosen, [&](Slot& slot) noexcept {
    Word& word = of_class(slot, h).word;
    if (level::top_round(word) == address_of(block)) return arch::Sequence::freed_twice;
    Magazine m = magazines().of_word(word);
    if (!m || !m.has_room()) return arch::Sequence::full;
    m.push(block);
    set(word, m.word());
    return arch::Sequence::done;
  });
}

void CoreLevel::empty_words(Slot& slot, HomeClass h) noexcept {
  slabs_.empty(take_word(slot, h));
  slabs_.empty(take_previous(slot, h));
}

void CoreLevel::empty(Word held) noexcept {
  if (held != empty_word) slabs_.empty(magazines().of_word(held));
}

void CoreLevel::take_object_words(Slot& slot, HomeClass h, Word* held) noexcept {
  ObjectWords* const words = known_words(slot, ObjectClasses::chunk(h));
  if (words == nullptr) return;
  const unsigned i = ObjectClasses::within(h);
  for (Word* const word : {&words->words[i], &words->previous[i]}) {
    if (level::peek(*word) != 0) take_words(slot, {word, 1}, held);
    ++held;
  }
}

void CoreLevel::take_abandoned_words(Slot& slot, HomeClass h, Word* held) noexcept {
  if (may_stop()) take_object_words(slot, h, held);
  ObjectWords* const words = known_words(slot, ObjectClasses::chunk(h));
  if (words == nullptr) return;
  const unsigned i = ObjectClasses::within(h);
  for (Word* const word : {&words->words[i], &words->previous[i]}) {
    // acquire: what its last user did with the blocks, who told the caller that he is done.
    if (*held == 0 && level::peek(*word) != 0) *held = __atomic_exchange_n(word, 0, __ATOMIC_ACQUIRE);
    ++held;
  }
}

void CoreLevel::empty_object_words(const Word* held) noexcept {
  for (unsigned i = 0; i < 2; ++i) empty(held[i]);
}

void CoreLevel::empty_object_words(Slot& slot, HomeClass h, const Word* held) noexcept {
  empty_object_words(held);
  ObjectWords* const words = known_words(slot, ObjectClasses::chunk(h));
  if (words == nullptr) return;
  release_cap(words->cap[ObjectClasses::within(h)], h);
  // relaxed: a wish. The number may become a class of another size.
  __atomic_store_n(&words->armed_by[ObjectClasses::within(h)], 0U, __ATOMIC_RELAXED);
}

}  // namespace terrace::heap
