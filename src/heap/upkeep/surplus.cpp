// SPDX-License-Identifier: MIT OR Apache-2.0
// The bound on all memory that is resident beyond what is live (docs/adr/0018):
//
//   surplus   free blocks in slabs whose pages are resident + dirty spans + what slots and depots may hold, and pin
//   bound     the larger of 16 MiB and a quarter of what is live, and up to 48 MiB of what was in use lately (docs/adr/0037)
//
// It holds whenever a slow path has ended, since each that could break it looks, and whoever finds it broken mends it. Fast
// paths can not break it: they move blocks between the program and the words of slots, which count in full. Ticks, which lower
// it, are parts of slow paths. So no thread, timer or signal is needed. Free spans, and free blocks in slabs, have a limit each
// inside of it (Spans::may_keep()).
//
// A block in a slot or depot pins the page that it lies in, with all free blocks there: 48 bytes may cost 4 KiB. How many pages
// hold such blocks and none of the program's is not known. It is estimated: of all pinned bytes, the share that these blocks
// are of all blocks that left the slabs. Where the estimate was wrong, the levels are not emptied for it again before a tick,
// or before a quarter of the live blocks has come back.
//
// Near a limit on the memory of the process, of its control groups or of the machine, the bound is lower (docs/adr/0040): three
// quarters of what is left up to nine tenths of the limit, in the last tenth next to nothing. Then more in use is less that may
// be free, and who takes a span looks, too.
//
// Not in the surplus: free blocks that share pages with blocks of the program. No allocator can give those back.
#include "base/assert.h"
#include "heap/upkeep/maintenance.h"

namespace terrace::heap {
namespace {

constexpr std::uint64_t bound_floor = 16 * mib;
constexpr std::uint64_t bound_share = 4;       // of what is live
constexpr std::uint64_t bound_at_limit = mib;  // what slots need to work at all
constexpr std::uint64_t purge_further = 16;    // of the bound, so that not every call purges a little

constexpr std::uint64_t purge_at_rest_per_ms = 32 * kib;  // to purge that and fault it in again takes a hundredth of it
constexpr std::uint64_t longest_counted_ms = 2000;        // what goes back by it is all that the bound leaves
constexpr std::uint64_t worth_purging_at_rest = 256 * kib;

constexpr std::uint64_t tenth_of_limit = 10, unknown_share = 4;
constexpr unsigned ticks_between_readings = 8;  // of the limits

constexpr std::uint64_t budget_per_slot = 256 * kib;
constexpr std::uint64_t depot_budget_per_slot = 96 * kib;
constexpr std::uint64_t depot_budget_floor = 128 * kib;
constexpr std::uint64_t burst_per_slot = 4 * mib;
constexpr std::uint64_t budget_floor = 256 * kib;
constexpr std::uint64_t budget_share = 16;  // of the memory in use

}  // namespace

std::uint64_t Maintenance::surplus() const noexcept {
  return slabs_.waste() + spans_.dirty_bytes() + levels_granted() + pinned_by_levels();
}

std::uint64_t Maintenance::pinned_by_levels() const noexcept {
  const std::uint64_t out = slabs_.in_use_bytes(), held = min_of(levels_.granted(), out);
  return out == 0 ? 0 : slabs_.pinned() / 256 * (held * 256 / out);
}

void Maintenance::open(std::uint64_t decay_ms, std::uint64_t budget) noexcept {
  decay_ms_ = decay_ms;
  budget_ = budget;
  rest_purged_at_ = os::coarse_milliseconds();
  read_limits(os::Groups::mounted);
}

void Maintenance::read_limits(os::Groups groups) noexcept {
  os::read_limits(limits_, groups);
  usable_.store(limits_.memory() / tenth_of_limit * (tenth_of_limit - 1), std::memory_order_relaxed);
  processors_.store(limits_.processors, std::memory_order_relaxed);
}

// Limits change while a process runs, but seldom. Rungs without sequences do not ask in what sandbox they are.
void Maintenance::read_limits_again() noexcept {
  if (ticks_to_reading_ != 0) {
    --ticks_to_reading_;
    return;
  }
  if (!levels_.core().has_sequences() || !os::may_open_files()) return;
  ticks_to_reading_ = ticks_between_readings;
  read_limits(os::Groups::all);
}

// A quarter of what is left is for what is not known here: stacks, libraries, other processes.
std::uint64_t Maintenance::left_to_limit() const noexcept {
  const std::uint64_t most = usable_.load(std::memory_order_relaxed), left = most - min_of(most, spans_.in_use_bytes());
  return left - left / unknown_share;
}

// Who sets a budget wants that much in the levels.
std::uint64_t Maintenance::within_limit(std::uint64_t bytes) const noexcept {
  return min_of(bytes, max_of(bound_at_limit, left_to_limit()) + budget_);
}

void Maintenance::keep_limit() noexcept {
  if (slabs_.waste() + spans_.dirty_bytes() > left_to_limit()) keep_bound();
}

// Blocks in the levels left the slabs, but are not live.
std::uint64_t Maintenance::surplus_share() const noexcept {
  const std::uint64_t out = slabs_.in_use_bytes() + large_.counters().live_bytes.read();
  const std::uint64_t live = out - min_of(out, levels_granted());
  return max_of(bound_floor, live / bound_share) + budget_;
}

// The shares of the bound that the levels get add up to 7/8, in a burst to all.
void Maintenance::update_limits() noexcept {
  const unsigned slots = min_of(levels_.core().slot_count(), processors_.load(std::memory_order_relaxed));  // that are filled
  level::Budget &core = levels_.core().budget(), &processors = levels_.processors().budget(), &nodes = levels_.nodes().budget();
  const unsigned of_nodes = levels_.nodes().depots().exist() ? 2 : 0;  // of 4 parts of what depots may hold
  const auto limit_depots = [&](std::uint64_t bytes, std::uint64_t in_burst) {
    nodes.set_limit(bytes / 4 * of_nodes, in_burst / 4 * of_nodes);
    processors.set_limit(bytes - bytes / 4 * of_nodes, in_burst - in_burst / 4 * of_nodes);
  };
  if (budget_ != 0) {
    core.set_limit(budget_ - budget_ / 4);
    return limit_depots(budget_ / 4, 0);
  }
  const std::uint64_t by_use = spans_.in_use_bytes() / budget_share;
  const std::uint64_t eighth = within_limit(surplus_share()) / 8;
  const std::uint64_t burst = burst_per_slot * slots;
  core.set_limit(min_of(max_of(budget_floor + budget_per_slot * slots, by_use), 3 * eighth), min_of(burst, 2 * eighth));
  limit_depots(min_of(max_of(depot_budget_floor + depot_budget_per_slot * slots, by_use), eighth), min_of(burst, eighth));
}

std::uint64_t Maintenance::levels_limit() noexcept {
  return levels_.core().budget().limit() + levels_.processors().budget().limit() + levels_.nodes().budget().limit();
}

// Dirty spans first: that takes the fewest system calls.
void Maintenance::purge_down_to(std::uint64_t target) noexcept {
  while (surplus() > target) {
    const std::uint64_t before = surplus(), excess = before - target;
    const std::uint64_t dirty = spans_.dirty_bytes(), waste = slabs_.waste();
    spans_.purge_down_to(dirty - min_of(dirty, excess));
    if (surplus() > target) slabs_.purge_down_to(waste - min_of(waste, excess));
    if (surplus() >= before && slabs_.waste() >= waste) return;  // nothing goes; else slabs that became spans may
  }
}

// What slots and depots hold goes to the slabs. How much less is pinned then.
std::uint64_t Maintenance::unpin() noexcept {
  const std::uint64_t before = slabs_.pinned();
  draining_.drain_depots();
  draining_.drain_slots();
  return before - min_of(before, slabs_.pinned());
}

// Without what the levels may hold: beside little that is live, that would hide how much has come back.
std::uint64_t Maintenance::live_in_slabs() const noexcept {
  const std::uint64_t out = slabs_.in_use_bytes();
  return out - min_of(out, levels_.granted());
}

void Maintenance::accept_excess(std::uint64_t bytes) noexcept {
  const std::uint64_t live = live_in_slabs();
  accepted_above_.store(live - live / 4, std::memory_order_relaxed);
  accepted_.store(bytes, std::memory_order_relaxed);
}

// What is freed while demand rests goes back at once, as much as the time allows that has gone by since it last did: what a
// program needs again after each pause costs it little.
void Maintenance::purge_at_rest(std::uint64_t now) noexcept {
  const std::uint64_t dirty = spans_.dirty_bytes(), waste = slabs_.waste();
  if (dirty + waste < worth_purging_at_rest || !draining_.mutex().try_lock()) return;
  rest_purged_at_ = max_of(rest_purged_at_, now - min_of(now, longest_counted_ms));
  if (now > rest_purged_at_) {
    const std::uint64_t most = (now - rest_purged_at_) * purge_at_rest_per_ms;
    std::uint64_t purged = spans_.purge_at_rest(dirty - min_of(dirty, most));
    if (purged < most) {
      slabs_.purge_down_to(waste - min_of(waste, most - purged));
      purged += waste - min_of(waste, slabs_.waste());
    }
    rest_purged_at_ += purged / purge_at_rest_per_ms;
  }
  draining_.mutex().unlock();
}

// At most one thread; the others leave it to that one, which looks again when it has unlocked.
void Maintenance::purge_to_bound() noexcept {
  TERRACE_ASSERT(!os::LockOrder::holds_within(os::Rank::environment), "the bound is kept while a lock is held");
  while (surplus() > surplus_bound() + accepted_excess() && draining_.mutex().try_lock()) {
    update_limits();
    const std::uint64_t target = surplus_bound() - surplus_bound() / purge_further;
    const std::uint64_t pinned = pinned_by_levels();
    std::uint64_t wrongly = 0;  // estimated to be pinned by the levels
    if (!level::Closed::to_this_thread() && pinned >= target / 2) wrongly = pinned - min_of(pinned, unpin());
    purge_down_to(target);
    // Much less is live than when the levels were granted so much.
    if (!level::Closed::to_this_thread() && surplus() > surplus_bound() && levels_granted() > levels_limit()) {
      unpin();
      purge_down_to(surplus_bound() - surplus_bound() / purge_further);
    }
    const std::uint64_t bound = surplus_bound(), left = surplus();
    accept_excess(max_of(wrongly, left <= bound ? 0 : left - bound + bound / purge_further));
    draining_.mutex().unlock();
  }
}

}  // namespace terrace::heap
