// SPDX-License-Identifier: MIT OR Apache-2.0
// What slots hold of object caches. Undoing what makes a block an object calls a program's function, so no lock is held then.
#include "heap/upkeep/draining.h"
#include "heap/upkeep/waiting.h"
#include "os/yield.h"

#include <utility>

namespace terrace::heap {

using level::Slot, level::words_of;

// Whoever takes blocks of a class in this way is waited for by who removes it. Whether `take` took any; it may say which class.
template <class Take>
bool Draining::take_with_notice(HomeClass& h, Take take) noexcept {
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
  // release, pairs with the acquire in drain_abandoned(): the blocks are in their slabs.
  while (before != 0 && !n.compare_exchange_weak(before, before - 1, std::memory_order_release, std::memory_order_relaxed)) {
  }
}

}  // namespace

// One class after the other, as a destructor may wait for whom another class is waited for.
void Draining::empty_own_chunks(Slot& slot) noexcept {
  CoreLevel& core = levels_.core();
  core.for_each_chunk(slot, [&](level::ObjectWords& words, unsigned chunk) {
    for (unsigned i = 0; i < level::objects_per_chunk; ++i) {
      if ((level::peek(words.words[i]) | level::peek(words.previous[i])) == 0) continue;
      HomeClass h = ObjectClasses::home(chunk * level::objects_per_chunk + i);
      Word held[2] = {};
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

void Draining::empty_taken() noexcept {
  for (unsigned i = 0; i < level::objects_per_chunk; ++i) {
    Word held[2] = {};
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
void Draining::age_prepared() noexcept {
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

void Draining::drain_objects(HomeClass h) noexcept {
  CoreLevel& core = levels_.core();
  const auto look = [&](Slot& slot) {
    Word held[2] = {};
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
  levels_.drain_depots(h);
}

// Whoever takes blocks under the lock and is done with them under it, is done when the lock was had once; and who takes some
// from then on finds none.
void Draining::drain_abandoned(HomeClass h) noexcept {
  CoreLevel& core = levels_.core();
  core.for_each([&](Slot& slot) {
    Word held[2] = {};
    {
      const os::LockGuard guard(mutex_);
      core.take_abandoned_words(slot, h, held);
    }
    core.empty_object_words(slot, h, held);
  });
  Word held[2] = {};
  {
    const os::LockGuard guard(mutex_);
    if (taken_.chunk == ObjectClasses::chunk(h)) {
      held[0] = std::exchange(taken_.words[ObjectClasses::within(h)], 0);
      held[1] = std::exchange(taken_.words[level::objects_per_chunk + ObjectClasses::within(h)], 0);
    }
  }
  core.empty_object_words(held);
  levels_.drain_depots(h);
  { const os::LockGuard guard(mutex_); }
  // acquire, pairs with the release in give_no_more().
  while (object_classes[h].on_the_way.load(std::memory_order_acquire) != 0) os::sleep_briefly();
}

}  // namespace terrace::heap
