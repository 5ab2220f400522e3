// SPDX-License-Identifier: MIT OR Apache-2.0
// Slow paths look at the clock now and then, and whoever finds that a tick is due does the work. A tick begins a round over
// slots and depots, which goes on in pieces, a piece at each look at the clock, until all had their turn: the thread is in the
// middle of somebody's malloc, and machines may have thousands of slots.
#include "heap/maintenance.h"

#include "heap/waiting.h"
#include "os/clock.h"
#include "os/yield.h"

#include <utility>

namespace terrace::heap {
namespace {

using level::Slot, level::words_of;

constexpr std::uint32_t slots_in_a_piece = 64;  // of a round
constexpr std::size_t few_words = 16;           // that are drained at a time, where they are kept on the stack

}  // namespace

std::uint64_t Maintenance::tick() noexcept {
  const std::uint64_t now = os::coarse_milliseconds();
  if (round_unfinished_.load(std::memory_order_relaxed)) {  // relaxed: a hint; what a round knows is under the lock
    if (mutex_.try_lock()) {
      go_on_round();
      mutex_.unlock();
    }
    return now;
  }
  std::uint64_t last = last_tick_.load(std::memory_order_relaxed);  // relaxed: only the clock is compared
  if (now - last < options_->decay_ms / 2 + 1) return now;
  if (!last_tick_.compare_exchange_strong(last, now, std::memory_order_relaxed)) return now;
  if (last == 0)
    return now;  // a process that has just begun has nothing to give back, and the look at all there is costs pages
  if (!mutex_.try_lock()) return now;
  read_limits_again();
  update_limits();
  go_on_round();
  levels_.core().budget().fade();
  levels_.processors().budget().fade();
  levels_.nodes().budget().fade();
  slabs_.tick();
  spans_.decay(now);
  tolerated_.store(0, std::memory_order_relaxed);
  mutex_.unlock();
  return now;
}

// Of a thread that ends, or has ended: nobody else is in the middle of anything there.
void Maintenance::drain_slot(Slot& slot) noexcept {
  ChainWord held[few_words];
  drain_words(slot, held);
  empty_own_chunks(slot);
  // What only this thread could empty was tolerated as long as it lived.
  if (levels_.core().rung() == percpu::Rung::thread)
    tolerated_.store(0, std::memory_order_relaxed);  // relaxed: see maintenance.h
  keep_bound();
}

// Magazines go to the slabs, large blocks to the spans. With room for all words, where each piece costs a barrier.
void Maintenance::drain_words(Slot& slot, std::span<ChainWord> held) noexcept {
  CoreLevel& core = levels_.core();
  const bool all = in_pieces(words_of(slot), held, [&](std::size_t first, std::span<ChainWord> words) {
    if (!core.take_words(slot, words, held.data())) return false;
    for (std::size_t i = 0; i < words.size(); ++i) {
      if (held[i] == chain::empty) continue;
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

void Maintenance::drain_large_words(Slot& slot) noexcept {
  ChainWord held[level::large_words] = {};
  if (levels_.core().take_words(slot, slot.large, held)) large_slots_.empty(slot, held);
}

void Maintenance::go_on_round() noexcept {
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
bool Maintenance::age_slots() noexcept {
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

void Maintenance::look_at_words(Slot& slot, bool all) noexcept {
  if (has_waited(slot, all)) return drain_words(slot, held_);
  if (large_has_waited(slot, all)) drain_large_words(slot);
}

void Maintenance::drain_chunk(Slot& slot, level::ObjectWords& words, unsigned chunk, std::span<ChainWord> held) noexcept {
  CoreLevel& core = levels_.core();
  const bool all = in_pieces(words_of(words), held, [&](std::size_t, std::span<ChainWord> piece) {
    if (!core.take_words(slot, piece, held.data())) return false;
    for (std::size_t i = 0; i < piece.size(); ++i) core.empty(held[i]);
    return true;
  });
  if (all) core.release_caps(words, chunk);
}

// Chunks of objects that are prepared, or of the others.
void Maintenance::look_at_chunks(Slot& slot, bool prepared, bool all, std::span<ChainWord> held) noexcept {
  levels_.core().for_each_chunk(slot, [&](level::ObjectWords& words, unsigned chunk) {
    if (object_classes.is_prepared(chunk) == prepared && has_waited(words, all)) drain_chunk(slot, words, chunk, held);
  });
}

// Whoever takes blocks of a class in this way is waited for by who removes it. Whether `take` took any; it may say which class.
template <class Take>
bool Maintenance::take_with_notice(HomeClass& h, Take take) noexcept {
  const os::LockGuard guard(mutex_);
  if (!take()) return false;
  object_classes[h].on_the_way.fetch_add(1, std::memory_order_relaxed);  // relaxed: the lock orders it
  return true;
}

namespace {

// A forked child, where nobody is on the way but the caller perhaps, has begun from 0.
void give_no_more(HomeClass h) noexcept {
  std::atomic<unsigned>& n = object_classes[h].on_the_way;
  unsigned before = n.load(std::memory_order_relaxed);
  // release, pairs with wait_for_others(): the blocks are in their slabs.
  while (before != 0 && !n.compare_exchange_weak(before, before - 1, std::memory_order_release, std::memory_order_relaxed)) {
  }
}

}  // namespace

// One class after the other, as a destructor may wait for whom another class is waited for.
void Maintenance::empty_own_chunks(Slot& slot) noexcept {
  CoreLevel& core = levels_.core();
  core.for_each_chunk(slot, [&](level::ObjectWords& words, unsigned chunk) {
    for (unsigned i = 0; i < level::objects_per_chunk; ++i) {
      if ((level::peek(words.words[i]) | level::peek(words.previous[i])) == 0) continue;
      HomeClass h = ObjectClasses::home(chunk * level::objects_per_chunk + i);
      ChainWord held[2] = {};
      const auto take = [&] {
        core.take_object_words(slot, h, held);
        return (held[0] | held[1]) != 0;
      };
      if (!take_with_notice(h, take)) continue;
      core.empty_object_words(held);
      give_no_more(h);
    }
    core.release_caps(words, chunk);
  });
}

void Maintenance::empty_taken() noexcept {
  for (unsigned i = 0; i < level::objects_per_chunk; ++i) {
    ChainWord held[2] = {};
    HomeClass h = ObjectClasses::home(i);
    const auto take = [&] {
      h = ObjectClasses::home(taken_.chunk * level::objects_per_chunk + i);
      held[0] = std::exchange(taken_.words[i], 0);
      held[1] = std::exchange(taken_.words[level::objects_per_chunk + i], 0);
      return (held[0] | held[1]) != 0;
    };
    if (!take_with_notice(h, take)) continue;
    levels_.core().empty_object_words(held);
    give_no_more(h);
  }
}

// One thread at a time stops words, but what was taken is undone with the lock free: that calls a program's function.
void Maintenance::age_prepared() noexcept {
  CoreLevel& core = levels_.core();
  empty_taken();  // in a forked child, of a thread that does not exist here
  const auto look = [&](Slot& slot) {
    core.for_each_chunk(slot, [&](level::ObjectWords& words, unsigned chunk) {
      if (!object_classes.is_prepared(chunk)) return;
      {
        const os::LockGuard guard(mutex_);
        if (!has_waited(words, false) || !core.take_words(slot, words_of(words), taken_.words)) return;
        taken_.chunk = chunk;
      }
      empty_taken();
      core.release_caps(words, chunk);
    });
  };
  if (core.rung() == percpu::Rung::thread) {
    if (Slot* const mine = level::Closed::to_this_thread() ? nullptr : core.current()) look(*mine);
  } else if (core.may_stop()) {
    for (unsigned i = 0; i < core.slot_count(); ++i) look(core.slot(i));
  }
  object_classes.for_each([&](HomeClass h) {
    if (!object_classes.is_prepared(ObjectClasses::chunk(h))) return;
    take_with_notice(h, [] { return true; });
    levels_.processors().age_prepared(h);
    levels_.nodes().age_prepared(h);
    give_no_more(h);
  });
}

void Maintenance::empty_objects(HomeClass h) noexcept {
  CoreLevel& core = levels_.core();
  const auto look = [&](Slot& slot) {
    ChainWord held[2] = {};
    {
      const os::LockGuard guard(mutex_);
      core.take_object_words(slot, h, held);
    }
    core.empty_object_words(slot, h, held);
  };
  if (core.rung() == percpu::Rung::thread) {
    if (Slot* const mine = level::Closed::to_this_thread() ? nullptr : core.current()) look(*mine);
  } else if (!core.may_stop()) {
    if (Slot* const slot = core.current()) core.empty_words(*slot, h);
  } else {
    for (unsigned i = 0; i < core.slot_count(); ++i) look(core.slot(i));
  }
}

void Maintenance::empty_abandoned(HomeClass h) noexcept {
  CoreLevel& core = levels_.core();
  core.for_each([&](Slot& slot) {
    ChainWord held[2] = {};
    {
      const os::LockGuard guard(mutex_);
      core.take_abandoned_words(slot, h, held);
    }
    core.empty_object_words(slot, h, held);
  });
  ChainWord held[2] = {};
  {
    const os::LockGuard guard(mutex_);
    if (taken_.chunk == ObjectClasses::chunk(h)) {
      held[0] = std::exchange(taken_.words[ObjectClasses::within(h)], 0);
      held[1] = std::exchange(taken_.words[level::objects_per_chunk + ObjectClasses::within(h)], 0);
    }
  }
  core.empty_object_words(held);
}

// Whoever takes blocks under the lock and is done with them under it, is done now; and who takes some from now on finds none.
void Maintenance::wait_for_others(HomeClass h) noexcept {
  { const os::LockGuard guard(mutex_); }
  while (object_classes[h].on_the_way.load(std::memory_order_acquire) != 0) os::sleep_briefly();
}

void Maintenance::drain_slots() noexcept {
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
void Maintenance::drain_own_slot(bool all) noexcept {
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

void Maintenance::drain_depots() noexcept {
  levels_.processors().drain();
  levels_.nodes().drain();
}

void Maintenance::drain_all() noexcept {
  const os::LockGuard guard(mutex_);
  drain_slots();
  drain_depots();
  const std::uint64_t returns = slabs_.returns();  // what comes back from now on trim() may miss
  slabs_.trim();
  spans_.purge_all();
  drained_at_.store(returns, std::memory_order_relaxed);
}

bool Maintenance::trim() noexcept {
  const std::uint64_t before = purged_bytes();
  drain_all();
  return purged_bytes() != before;
}

// Memory is short: what is missing may lie in the levels, in pieces. Whether another try makes sense; not for more than there
// ever was, which some programs ask for just to see, and not when all was drained before and nothing has come back since: a
// program that works at its limit may be refused many times, and each time would stop all slots. Large blocks that came back
// are spans, where whoever asks for one has looked.
bool Maintenance::make_room(std::size_t bytes) noexcept {
  if (bytes > spans_.window().extent() || level::Closed::to_this_thread()) return false;
  // The levels first: a block that leaves them meanwhile raises the number.
  if (levels_are_empty() && slabs_.returns() == drained_at_.load(std::memory_order_relaxed)) return false;
  drain_all();
  return true;
}

// Of what drain_all() would empty.
bool Maintenance::levels_are_empty() noexcept {
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

std::uint64_t Maintenance::purged_bytes() const noexcept {
  std::uint64_t sum = spans_.counters().purged_bytes.read();
  for (std::size_t h = 1; h < home_class_count; ++h) sum += slabs_.counters(home_at(h)).purged_bytes.read();
  object_classes.for_each([&](HomeClass h) { sum += slabs_.counters(h).purged_bytes.read(); });
  return sum;
}

}  // namespace terrace::heap
