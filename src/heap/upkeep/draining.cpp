// SPDX-License-Identifier: MIT OR Apache-2.0
#include "heap/upkeep/draining.h"

#include "heap/upkeep/waiting.h"

namespace terrace::heap {
namespace {

using level::Slot, level::words_of;

constexpr std::uint32_t slots_in_a_piece = 64;  // of a round
constexpr std::size_t few_words = 16;           // that are drained at a time, where they are kept on the stack

}  // namespace

void Draining::drain(Slot& slot) noexcept {
  Word held[few_words];
  drain_words(slot, held);
  empty_own_chunks(slot);
}

// Magazines go to the slabs, large blocks to the spans. With room for all words, where each piece costs a barrier.
void Draining::drain_words(Slot& slot, std::span<Word> held) noexcept {
  CoreLevel& core = levels_.core();
  const bool all = in_pieces(words_of(slot), held, [&](std::size_t first, std::span<Word> words) {
    if (!core.take_words(slot, words, held.data())) return false;
    for (std::size_t i = 0; i < words.size(); ++i) {
      if (held[i] == empty_word) continue;
      if (first + i < level::first_large)
        core.empty(held[i]);
      else
        large_slots_.give_up(held[i]);
    }
    return true;
  });
  if (!all) return;
  core.release_caps(slot);
  large_slots_.release_grants(slot);
}

void Draining::drain_large_words(Slot& slot) noexcept {
  Word held[level::large_words] = {};
  if (levels_.core().take_words(slot, slot.large, held)) large_slots_.empty(slot, held);
}

void Draining::go_on_round() noexcept {
  if (turn_ == Turn::slots && age_slots()) turn_ = Turn::processors;
  if (turn_ == Turn::processors && levels_.processors().age()) turn_ = Turn::nodes;
  const bool done = turn_ == Turn::nodes && levels_.nodes().age();
  if (done) {
    turn_ = Turn::slots;
    round_slot_ = 0;
  }
  round_unfinished_.store(!done, std::memory_order_relaxed);
}

// Whether all slots had their turn in this round.
bool Draining::age_slots() noexcept {
  CoreLevel& core = levels_.core();
  const std::uint32_t count = core.slot_count();
  if (core.rung() == percpu::Rung::thread) return true;  // they belong to their threads
  if (round_slot_ < count && !core.may_stop()) {
    drain_own_slot(false);
    round_slot_ = count;
  }
  const std::uint32_t end = min_of(round_slot_ + slots_in_a_piece, count);
  for (; round_slot_ < end; ++round_slot_) {
    look_at_chunks(core.slot(round_slot_), false, false, held_);
    look_at_words(core.slot(round_slot_), false);
  }
  return round_slot_ == count;
}

void Draining::look_at_words(Slot& slot, bool all) noexcept {
  if (has_waited(slot, all)) return drain_words(slot, held_);
  if (large_has_waited(slot, all)) drain_large_words(slot);
}

void Draining::drain_chunk(Slot& slot, level::ObjectWords& words, unsigned chunk, std::span<Word> held) noexcept {
  CoreLevel& core = levels_.core();
  const bool all = in_pieces(words_of(words), held, [&](std::size_t, std::span<Word> piece) {
    if (!core.take_words(slot, piece, held.data())) return false;
    for (std::size_t i = 0; i < piece.size(); ++i) core.empty(held[i]);
    return true;
  });
  if (all) core.release_caps(words, chunk);
}

// Chunks of objects that are prepared, or of the others.
void Draining::look_at_chunks(Slot& slot, bool prepared, bool all, std::span<Word> held) noexcept {
  levels_.core().for_each_chunk(slot, [&](level::ObjectWords& words, unsigned chunk) {
    if (object_classes.is_prepared(chunk) == prepared && has_waited(words, all)) drain_chunk(slot, words, chunk, held);
  });
}

void Draining::drain_slots() noexcept {
  CoreLevel& core = levels_.core();
  if (core.rung() == percpu::Rung::thread) {
    Slot* const mine = level::Closed::to_this_thread() ? nullptr : core.current();
    if (mine == nullptr) return;
    look_at_chunks(*mine, false, true, held_);
    return look_at_words(*mine, true);  // the others' belong to their threads
  }
  if (!core.may_stop()) return drain_own_slot(true);
  for (unsigned i = 0; i < core.slot_count(); ++i) {
    look_at_chunks(core.slot(i), false, true, held_);
    look_at_words(core.slot(i), true);
  }
}

// Without the barrier only the slot that the caller is on can be emptied, by sequences, and wherever it is moved meanwhile.
// What idle ones hold, which the budget bounds, stays until a thread that is not in the sandbox looks, or somebody runs there.
void Draining::drain_own_slot(bool all) noexcept {
  CoreLevel& core = levels_.core();
  Slot* const slot = core.current();
  if (slot == nullptr) return;
  core.for_each_chunk(*slot, [&](level::ObjectWords& words, unsigned chunk) {
    if (object_classes.is_prepared(chunk) || !has_waited(words, all)) return;
    for (unsigned i = 0; i < level::objects_per_chunk; ++i)
      core.empty_words(*slot, ObjectClasses::home(chunk * level::objects_per_chunk + i));
  });
  if (!has_waited(*slot, all)) return;
  for (std::size_t h = 0; h < level::slot_words; ++h) core.empty_words(*slot, home_at(h));
  core.release_caps(*slot);
  large_slots_.empty_own(*slot);
}

void Draining::drain_depots() noexcept {
  levels_.processors().drain();
  levels_.nodes().drain();
}

bool Draining::levels_are_empty() noexcept {
  CoreLevel& core = levels_.core();
  if (levels_.processors().budget().granted() + levels_.nodes().budget().granted() != 0) return false;
  const auto is_empty = [&core](Slot* slot) {
    if (slot == nullptr) return true;
    bool empty = hold_nothing(words_of(*slot));
    core.for_each_chunk(*slot, [&empty](level::ObjectWords& words, unsigned chunk) {
      if (!object_classes.is_prepared(chunk) && !hold_nothing(words_of(words))) empty = false;
    });
    return empty;
  };
  if (core.rung() == percpu::Rung::thread || !core.may_stop()) return is_empty(core.current());
  for (unsigned i = 0; i < core.slot_count(); ++i) {
    if (!is_empty(&core.slot(i))) return false;
  }
  return true;
}

}  // namespace terrace::heap
