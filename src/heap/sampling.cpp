// SPDX-License-Identifier: MIT OR Apache-2.0
#include "heap/sampling.h"

#include "profile/draw.h"

namespace terrace::heap {

using level::Slot;
using profile::profiler;

namespace {

std::int64_t load_count(const std::uint64_t& popped) noexcept {
  return static_cast<std::int64_t>(__atomic_load_n(&popped, __ATOMIC_RELAXED));
}

std::atomic<std::uint64_t>& armed(HomeClass h) noexcept {
  return is_object(h) ? object_classes[h].armed : profiler.armed(index(h));
}

}  // namespace

// From another cpu, after a migration, an exchange and a count may pass each other: the count is then armed at the next miss.
void Sampling::arm(Slot& slot, SizeClass c, std::uint64_t period) noexcept {
  const HomeClass h = levels_.core().own_word(slot, c);
  const std::uint64_t run = profile::first_drawn(profile::next_random(), class_size(c), period);
  // relaxed: numbers for statistics, this one first, see introspect/snapshot.cpp
  armed(h).fetch_add(run, std::memory_order_relaxed);
  const std::uint64_t before = __atomic_exchange_n(&levels_.core().of_class(slot, h).popped, 0 - run, __ATOMIC_RELAXED);
  armed(h).fetch_add(before, std::memory_order_relaxed);
}

// False: it was not since the profiler was started, and is from now on, with all classes of blocks or that one of objects.
bool Sampling::is_armed(Slot& slot, SizeClass c, std::uint64_t word) noexcept {
  const std::uint64_t period = word & profile::Profiler::most_period;
  // relaxed: one thread arms a slot; what it has not come to yet, another finds as it was before
  if (is_object(c)) {
    const HomeClass h = home_class(c, 0);
    const auto hash = static_cast<std::uint32_t>(word ^ word >> 32);
    std::uint32_t& by = levels_.core().object_words(slot, h)->armed_by[ObjectClasses::within(h)];
    if (__atomic_exchange_n(&by, hash, __ATOMIC_RELAXED) == hash) return true;
    arm(slot, c, period);
    return false;
  }
  if (__atomic_exchange_n(&slot.armed_by, word, __ATOMIC_RELAXED) == word) return true;
  for (std::size_t each = 1; each < class_count; ++each) arm(slot, SizeClass{static_cast<std::uint16_t>(each)}, period);
  return false;
}

// Whether the calling thread's slot has counted down to the allocation that is to be sampled.
bool Sampling::count_is_over(SizeClass c, std::uint64_t word) noexcept {
  if (!is_object(c) && !is_due(c)) return false;
  CoreLevel& core = levels_.core();
  Slot* const chosen = core.current_for(home_class(c, 0));
  if (chosen == nullptr) return false;
  const auto look = [=, this, &core](Slot& slot) noexcept {
    if (!is_armed(slot, c, word)) return false;
    const HomeClass h = core.own_word(slot, c);
    const std::int64_t count = load_count(core.of_class(slot, h).popped);
    if (count >= 0) arm(slot, c, word & profile::Profiler::most_period);
    // relaxed: a number for statistics. That pop has counted, and given nothing: its block counts where it comes from.
    if (count == 0) armed(h).fetch_sub(1, std::memory_order_relaxed);
    return count == 0;
  };
  return core.has_sequences() ? look(*chosen) : core.plainly(*chosen, look);
}

bool Sampling::is_due(SizeClass c) noexcept {
  Slot* const slot = levels_.core().current();
  return slot == nullptr || __atomic_load_n(&slot->armed_by, __ATOMIC_RELAXED) != profiler.word() ||
         load_count(slot->popped[index(levels_.core().own_word(*slot, c))]) >= 0;
}

void* Sampling::allocate(SizeClass c, std::size_t size, std::size_t align) noexcept {
  const std::uint64_t word = profiler.word(), period = word & profile::Profiler::most_period;
  if (period == 0) return nullptr;
  const std::size_t bytes = class_size(c);
  if (!count_is_over(c, word) && !profile::is_drawn(profile::next_random(), bytes, period)) return nullptr;
  const std::uint32_t sample = profiler.reserve();
  if (sample == 0) return nullptr;
  void* const p = large_.allocate(bytes, align, false, levels_.node());
  if (p == nullptr) {
    profiler.cancel(sample);
    return nullptr;
  }
  large_.set_sample(p, sample);
  const auto object_class = static_cast<std::uint16_t>(is_object(c) ? index(c) : 0);
  profiler.record(sample, {.address = p, .size = size, .weighed = bytes, .period = period, .object_class = object_class});
  return p;
}

void Sampling::look_at(void* p, std::size_t size) noexcept {
  const std::uint64_t period = profiler.period();
  if (period == 0 || !profile::is_drawn(profile::next_random(), size, period)) return;
  const std::uint32_t sample = profiler.reserve();
  if (sample == 0) return;
  large_.set_sample(p, sample);
  profiler.record(sample, {.address = p, .size = size, .weighed = size, .period = period});
}

void Sampling::drop_sample(void* p) noexcept {
  const std::uint32_t sample = large_.sample_of(p);
  large_.set_sample(p, 0);
  profiler.drop(sample);
}

// What was a small block by its class has a class' size.
bool Sampling::resize(const void* p, std::size_t size) noexcept {
  const std::uint32_t sample = large_.sample_of(p);
  const std::uint64_t have = profiler.table().at(sample).weighed;
  if (have > SizeRule::largest) return false;
  const SizeClass c = class_for(have);
  if (class_size(c) != have || size > have || size <= too_small_for(c)) return false;
  profiler.resize(sample, size);
  return true;
}

void Sampling::look_again(void* p, std::size_t size, std::uint32_t sample) noexcept {
  large_.set_sample(p, 0);
  if (sample != 0) profiler.drop(sample);
  look_at(p, size);
}

}  // namespace terrace::heap
