// SPDX-License-Identifier: MIT OR Apache-2.0
// Giving memory back over time. There is no thread of our own: slow paths look at the clock now and then, and whoever finds
// that a tick is due does the work. A tick begins a round over slots and depots, which goes on in pieces, a piece at each look
// at the clock, until all had their turn: the thread is in the middle of somebody's malloc, and machines may have thousands of
// slots.
#include "heap/heap.h"
#include "os/clock.h"
#include "os/membarrier.h"
#include "percpu/stop_slot.h"

#include <bit>

namespace terrace::heap {
namespace {

using level::Slot, level::words_of;

// In a piece of a round: slots looked at, and magazines that leave the depots, which take as long as their blocks' way to the
// slabs.
constexpr std::uint32_t slots_in_a_piece = 64, magazines_in_a_piece = 64;

// Different words, almost surely a different number. 0: nothing at all.
std::uint64_t fingerprint(std::span<const ChainWord> words) noexcept {
  std::uint64_t h = 0;
  for (const ChainWord& word : words) {
    const ChainWord w = level::peek(word);
    if (w != chain::empty) h = (h ^ w) * 0x9e3779b97f4a7c15U + 1;
  }
  return h;
}

// Word by word with a branch each would take as long as the system calls that were refused.
bool holds_nothing(Slot& slot) noexcept {
  const std::span<const ChainWord> words = words_of(slot);
  ChainWord even = 0, odd = 0;
  for (std::size_t i = 0; i + 1 < words.size(); i += 2) {
    even |= level::peek(words[i]);
    odd |= level::peek(words[i + 1]);
  }
  if (words.size() % 2 != 0) even |= level::peek(words.back());
  return (even | odd) == chain::empty;
}

// Whether the slot holds something that nobody has touched since the last look.
bool has_waited(Slot& slot, bool all) noexcept {
  const std::uint64_t now = fingerprint(words_of(slot));
  const bool waited = now != 0 && (all || now == slot.snapshot);
  slot.snapshot = waited ? 0 : now;
  return waited;
}

// The same of its large blocks, which are few and matter, while much goes on elsewhere in the slot; or it may keep some, and
// does not.
bool large_has_waited(Slot& slot, bool all) noexcept {
  const std::uint64_t granted = __atomic_load_n(&slot.large_granted, __ATOMIC_RELAXED), held = fingerprint(slot.large);
  const std::uint64_t reused = __atomic_load_n(&slot.large_reused, __ATOMIC_RELAXED);
  const std::uint64_t now = granted == 0 && held == 0 ? 0 : (held + reused + granted) | 1;
  const bool waited = now != 0 && (all || now == slot.large_snapshot);
  slot.large_snapshot = waited ? 0 : now;
  return waited;
}

}  // namespace

std::uint64_t Heap::tick() noexcept {
  const std::uint64_t now = os::coarse_milliseconds();
  if (round_unfinished_.load(std::memory_order_relaxed)) {  // relaxed: a hint; what a round knows is under the lock
    if (maintenance_.try_lock()) {
      go_on_round();
      maintenance_.unlock();
    }
    return now;
  }
  std::uint64_t last = last_tick_.load(std::memory_order_relaxed);  // relaxed: only the clock is compared
  if (now - last < options_.decay_ms / 2 + 1) return now;
  if (!last_tick_.compare_exchange_strong(last, now, std::memory_order_relaxed)) return now;
  if (last == 0)
    return now;  // a process that has just begun has nothing to give back, and the look at all there is costs pages
  if (!maintenance_.try_lock()) return now;
  update_limits();
  go_on_round();
  budget_.fade();
  depot_budget_.fade();
  slabs_.tick();
  spans_.decay(now);
  tolerated_.store(0, std::memory_order_relaxed);
  maintenance_.unlock();
  keep_bound();
  return now;
}

// What some words of a slot hold, which is stopped, locked, or its only thread calls: nobody else works on them.
bool Heap::take_words(Slot& slot, std::span<ChainWord> words, ChainWord* held) noexcept {
  if (percpu::has_sequences(core_.rung())) {
    if (!percpu::stop_words(words, held)) return false;
    percpu::start_words(words);
    return true;
  }
  if (core_.rung() == percpu::Rung::getcpu) slot.lock.lock();
  for (std::size_t i = 0; i < words.size(); ++i) {  // few hold anything, and a thread that ends does this
    held[i] = level::peek(words[i]);
    if (held[i] != chain::empty) __atomic_store_n(&words[i], chain::empty, __ATOMIC_RELAXED);
  }
  if (core_.rung() == percpu::Rung::getcpu) slot.lock.unlock();
  return true;
}

// Magazines go to the slabs, large blocks to the spans.
void Heap::drain_slot(Slot& slot) noexcept {
  ChainWord held[level::all_words] = {};
  if (!take_words(slot, words_of(slot), held)) return;
  for (std::size_t h = 0; h < level::slot_words; ++h) {
    for (const level::MagazineWord w : {held[h], held[level::first_previous + h]}) {
      if (w != level::no_magazine) empty(magazines_.of_word(w));
    }
  }
  for (std::size_t i = level::first_large; i < level::all_words; ++i) give_up_kept(held[i]);
  release_caps(slot);
  release_large_grants(slot);
}

void Heap::drain_large_words(Slot& slot) noexcept {
  ChainWord held[level::large_words] = {};
  if (!take_words(slot, slot.large, held)) return;
  for (const ChainWord block : held) give_up_kept(block);
  release_large_grants(slot);
}

// The caps start again from nothing, and their grants go back.
void Heap::release_caps(Slot& slot) noexcept {
  for (std::size_t h = 0; h < level::slot_words; ++h) {
    if (__atomic_load_n(&slot.cap[h], __ATOMIC_RELAXED) == 0) continue;
    const unsigned cap = __atomic_exchange_n(&slot.cap[h], std::uint8_t{0}, __ATOMIC_RELAXED);
    budget_.release(std::uint64_t{2} * cap * class_size(class_of(home_at(h))));
  }
}

void Heap::drain_thread_slot(Slot& slot) noexcept { heap.drain_slot(slot); }

void Heap::go_on_round() noexcept { round_unfinished_.store(!age_slots() || !age_depots(), std::memory_order_relaxed); }

// Whether all slots had their turn in this round.
bool Heap::age_slots() noexcept {
  if (core_.rung() == percpu::Rung::thread) return true;  // they belong to their threads
  if (round_slot_ < core_.slot_count() && !may_stop_slots()) {
    drain_own_slot(false);
    round_slot_ = core_.slot_count();
  }
  const std::uint32_t end = min_of<std::uint32_t>(round_slot_ + slots_in_a_piece, core_.slot_count());
  for (; round_slot_ < end; ++round_slot_) look_at_slot(core_.slot(round_slot_), false);
  return round_slot_ == core_.slot_count();
}

// The oldest magazine of each stack leaves in each round, so a depot that nobody wants anything from is empty after a while.
// Whether all stacks had their turn; then the next round is to begin.
bool Heap::age_depots() noexcept {
  const std::uint32_t groups = static_cast<std::uint32_t>(level::depot_keys) * depots_.processors();
  for (std::uint32_t given_up = 0; round_stacks_ < groups; ++round_stacks_) {
    if (given_up >= magazines_in_a_piece) return false;
    const std::size_t key = round_stacks_ / depots_.processors();
    level::Place place{.processor = round_stacks_ % depots_.processors()};
    for (unsigned left = depots_.marks(place.processor, key); left != 0; left &= left - 1) {
      place.shard = static_cast<unsigned>(std::countr_zero(left));
      if (give_up_oldest(depots_.at(place), key)) {
        ++given_up;
      } else {
        depots_.unmark_if_empty(place, key);
      }
    }
  }
  round_slot_ = round_stacks_ = 0;
  return true;
}

void Heap::look_at_slot(Slot& slot, bool all) noexcept {
  if (has_waited(slot, all)) return drain_slot(slot);
  if (large_has_waited(slot, all)) drain_large_words(slot);
}

void Heap::drain_slots() noexcept {
  if (core_.rung() == percpu::Rung::thread) {
    Slot* const mine = !ThreadSlots::closed() ? thread_slots_.mine() : nullptr;
    if (mine != nullptr) drain_slot(*mine);  // the others' belong to their threads
    return;
  }
  if (!may_stop_slots()) return drain_own_slot(true);
  for (unsigned i = 0; i < core_.slot_count(); ++i) look_at_slot(core_.slot(i), true);
}

// Without the barrier only the slot that the caller is on can be emptied, by sequences, and wherever it is moved meanwhile.
// What idle ones hold, which the budget bounds, stays until a thread that is not in the sandbox looks, or somebody runs there.
void Heap::drain_own_slot(bool all) noexcept {
  Slot* const slot = core_.current();
  if (slot == nullptr || !has_waited(*slot, all)) return;
  for (std::size_t h = 0; h < level::slot_words; ++h) empty_words(*slot, home_at(h));
  for (unsigned word = 0; word < level::large_words; ++word) give_up_kept(core_.take_large(*slot, word));
  release_caps(*slot);
  release_large_grants(*slot);
}

bool Heap::may_stop_slots() const noexcept { return !percpu::has_sequences(core_.rung()) || os::may_restart_sequences(); }

void Heap::drain_depots() noexcept {
  for (std::size_t key = 0; key < level::depot_keys; ++key) {
    for (level::Place place; place.processor < depots_.processors(); ++place.processor) {
      for (unsigned left = depots_.marks(place.processor, key); left != 0; left &= left - 1) {
        place.shard = static_cast<unsigned>(std::countr_zero(left));
        while (give_up_oldest(depots_.at(place), key)) {
        }
        depots_.unmark_if_empty(place, key);
      }
    }
  }
}

void Heap::drain_all() noexcept {
  const os::LockGuard guard(maintenance_);
  drain_slots();
  drain_depots();
  const std::uint64_t returns = slabs_.returns();  // what comes back from now on trim() may miss
  slabs_.trim();
  spans_.purge_all();
  drained_at_.store(returns, std::memory_order_relaxed);
}

bool Heap::trim() noexcept {
  if (!ready()) return false;
  if (checker_.on()) checker_.sweep("malloc_trim");
  const std::uint64_t before = purged_bytes();
  drain_all();
  return purged_bytes() != before;
}

// Memory is short: what is missing may lie in the levels, in pieces. Whether another try makes sense; not for more than there
// ever was, which some programs ask for just to see, and not when all was drained before and nothing has come back since: a
// program that works at its limit may be refused many times, and each time would stop all slots. Large blocks that came back
// are spans, where whoever asks for one has looked.
bool Heap::make_room(std::size_t bytes) noexcept {
  if (bytes > spans_.window().extent() || ThreadSlots::closed()) return false;
  // The levels first: a block that leaves them meanwhile raises the number.
  if (levels_are_empty() && slabs_.returns() == drained_at_.load(std::memory_order_relaxed)) return false;
  drain_all();
  return true;
}

// Of what drain_all() would empty.
bool Heap::levels_are_empty() noexcept {
  if (depot_budget_.granted() != 0) return false;
  const auto is_empty = [](Slot* slot) { return slot == nullptr || holds_nothing(*slot); };
  if (core_.rung() == percpu::Rung::thread) return is_empty(thread_slots_.mine());
  if (!may_stop_slots()) return is_empty(core_.current());
  for (unsigned i = 0; i < core_.slot_count(); ++i) {
    if (!is_empty(&core_.slot(i))) return false;
  }
  return true;
}

std::uint64_t Heap::purged_bytes() const noexcept {
  std::uint64_t sum = spans_.counters().purged_bytes.read();
  for (std::size_t h = 1; h < home_class_count; ++h) sum += slabs_.counters(home_at(h)).purged_bytes.read();
  return sum;
}

}  // namespace terrace::heap
