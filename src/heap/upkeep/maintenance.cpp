// SPDX-License-Identifier: MIT OR Apache-2.0
// Slow paths look at the clock now and then, and whoever finds that a tick is due does the work. A tick begins a round over
// slots and depots, which goes on in pieces, a piece at each look at the clock, until all had their turn: the thread is in the
// middle of somebody's malloc, and machines may have thousands of slots.
#include "heap/upkeep/maintenance.h"

#include "os/clock.h"

namespace terrace::heap {

void upkeep::keep_bound(Maintenance& m) noexcept { m.keep_bound(); }
void upkeep::tick(Maintenance& m) noexcept { m.tick(); }
void upkeep::update_limits(Maintenance& m) noexcept { m.update_limits(); }
bool upkeep::make_room(Maintenance& m, std::size_t bytes) noexcept { return m.make_room(bytes); }
bool upkeep::may_keep(Maintenance& m, std::size_t bytes) noexcept { return m.may_keep(bytes); }

void Maintenance::tick() noexcept {
  const std::uint64_t now = os::coarse_milliseconds();
  if (spans_.demand_rests(now)) purge_at_rest(now);
  if (draining_.is_unfinished()) {
    if (draining_.mutex().try_lock()) {
      draining_.go_on_round();
      draining_.mutex().unlock();
    }
    return;
  }
  std::uint64_t last = last_tick_.load(std::memory_order_relaxed);  // relaxed: only the clock is compared
  if (now - last < decay_ms_ / 2 + 1) return;
  if (!last_tick_.compare_exchange_strong(last, now, std::memory_order_relaxed)) return;
  if (last == 0) return;  // a process that has just begun has nothing to give back, and the look at all there is costs pages
  if (!draining_.mutex().try_lock()) return;
  read_limits_again();
  update_limits();
  draining_.go_on_round();
  levels_.core().budget().fade();
  levels_.processors().budget().fade();
  levels_.nodes().budget().fade();
  slabs_.tick();
  spans_.decay(now);
  accepted_.store(0, std::memory_order_relaxed);
  draining_.mutex().unlock();
}

void Maintenance::drain_slot(level::Slot& slot) noexcept {
  draining_.drain(slot);
  // An excess that only this thread could empty was accepted as long as it lived.
  if (levels_.core().rung() == percpu::Rung::thread)
    accepted_.store(0, std::memory_order_relaxed);  // relaxed: see maintenance.h
  keep_bound();
}

bool Maintenance::remove_objects(HomeClass h) noexcept {
  draining_.drain_abandoned(h);
  const bool free = levels_.close_objects(h);
  keep_bound();
  return free;
}

void Maintenance::drain_all() noexcept {
  const os::LockGuard guard(draining_.mutex());
  draining_.drain_slots();
  draining_.drain_depots();
  const std::uint64_t returned = slabs_.returned();  // what comes back from now on trim() may miss
  slabs_.trim();
  spans_.purge_all();
  drained_at_.store(returned, std::memory_order_relaxed);
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
  if (draining_.levels_are_empty() && slabs_.returned() == drained_at_.load(std::memory_order_relaxed)) return false;
  drain_all();
  return true;
}

std::uint64_t Maintenance::purged_bytes() const noexcept {
  std::uint64_t sum = spans_.counters().purged_bytes.read();
  for (std::size_t h = 1; h < home_class_count; ++h) sum += slabs_.counters(home_at(h)).purged_bytes.read();
  object_classes.for_each([&](HomeClass h) { sum += slabs_.counters(h).purged_bytes.read(); });
  return sum;
}

}  // namespace terrace::heap
