// SPDX-License-Identifier: MIT OR Apache-2.0
#include "heap/depot_level.h"

#include "base/report.h"
#include "heap/duplicates.h"
#include "heap/grants.h"
#include "os/clock.h"
#include "os/metadata.h"

#include <bit>

namespace terrace::heap {
namespace {

using level::Locality, level::Magazine, level::Place;

constexpr unsigned hand_steps = 64;
constexpr std::uint64_t refusals_between_reclaims = 16;  // a walk over memory that is cold
// In a piece of a round: they take as long as their blocks' way to the slabs.
constexpr std::uint32_t magazines_in_a_piece = 64;

std::uint64_t bytes_in(HomeClass h, unsigned blocks) noexcept { return std::uint64_t{blocks} * class_size(class_of(h)); }

}  // namespace

bool DepotLevel::open(const level::Depots::Layout& layout) noexcept {
  if (layout.count == 0 || depots_.exist()) return true;
  constexpr auto levels = os::Metadata::levels;
  auto* const shards = os::map_metadata<level::Shard>(levels, std::size_t{layout.count} * layout.shards);
  auto* const marks = os::map_metadata<std::uint16_t>(levels, level::depot_keys * layout.count);
  if (shards == nullptr || marks == nullptr) return false;
  depots_.open(layout, shards, marks);
  return true;
}

Magazine DepotLevel::take(const Locality& here, Wanted& wanted) noexcept {
  if (!depots_.exist()) return {};
  const level::Taken taken = depots_.take(here, index(wanted.h));
  if (taken.magazine) {
    budget_.release(bytes_in(wanted.h, taken.magazine.count()));
    wanted.foreign = taken.foreign;
  }
  return taken.magazine;
}

bool DepotLevel::give(const Locality& here, Magazine& m) noexcept {
  if (!depots_.exist() || m.count() == 0) return false;
  const HomeClass h = slabs_.slabs().home_of(m);
  if (!reserve(here, h, m.count())) return false;
  if (const void* const twice = duplicate_in(m)) report_double_free("free", twice);
  if (depots_.put(here, index(h), m)) return true;
  budget_.release(bytes_in(h, m.count()));
  return false;
}

// As for caps: beyond the budget now and then somebody makes room, by what nobody wanted lately, and by what the class itself
// has held for longest.
bool DepotLevel::reserve(const Locality& here, HomeClass h, unsigned blocks) noexcept {
  const std::uint64_t bytes = bytes_in(h, blocks);
  if (budget_.reserve(bytes)) return true;
  if (budget_.refused(weight_of_refusal(blocks, class_of(h)))) budget_.look_for_rush(os::coarse_milliseconds());
  if (refusals_.add() % refusals_between_reclaims == 0) {
    reclaim();
    give_up_oldest(depots_.at(depots_.place(here)), index(h));
  }
  return budget_.reserve(bytes);
}

// A clock hand over the depots: a stack that nobody has wanted since it came by is given up.
void DepotLevel::reclaim() noexcept {
  const unsigned total = depots_.count() * static_cast<unsigned>(level::depot_keys);
  if (total == 0) return;
  const unsigned first = hand_.fetch_add(hand_steps, std::memory_order_relaxed);
  for (unsigned i = 0; i < hand_steps; ++i) {
    const unsigned at = (first + i) % total;
    level::Shard& shard = depots_.at(at / level::depot_keys);
    const std::size_t key = at % level::depot_keys;
    if (!shard.has(key) || shard.was_recent(key)) continue;
    while (give_up_oldest(shard, key)) {
    }
  }
}

// The oldest magazine of a stack goes to the slabs. False: there was none.
bool DepotLevel::give_up_oldest(level::Shard& shard, std::size_t key) noexcept {
  const Magazine m = shard.pop_oldest(key);
  if (!m) return false;
  if (m.count() != 0) budget_.release(bytes_in(home_at(key), m.count()));
  slabs_.empty(m);
  return true;
}

bool DepotLevel::age() noexcept {
  const std::uint32_t depots = depots_.depots();
  if (depots == 0) return true;
  const std::uint32_t groups = static_cast<std::uint32_t>(level::depot_keys) * depots;
  for (std::uint32_t given_up = 0; round_stacks_ < groups; ++round_stacks_) {
    if (given_up >= magazines_in_a_piece) return false;
    const std::size_t key = round_stacks_ / depots;
    Place place{.depot = round_stacks_ % depots};
    for (unsigned left = depots_.marks(place.depot, key); left != 0; left &= left - 1) {
      place.shard = static_cast<unsigned>(std::countr_zero(left));
      if (give_up_oldest(depots_.at(place), key)) {
        ++given_up;
      } else {
        depots_.unmark_if_empty(place, key);
      }
    }
  }
  round_stacks_ = 0;
  return true;
}

void DepotLevel::drain() noexcept {
  for (std::size_t key = 0; key < level::depot_keys; ++key) {
    for (Place place; place.depot < depots_.depots(); ++place.depot) {
      for (unsigned left = depots_.marks(place.depot, key); left != 0; left &= left - 1) {
        place.shard = static_cast<unsigned>(std::countr_zero(left));
        while (give_up_oldest(depots_.at(place), key)) {
        }
        depots_.unmark_if_empty(place, key);
      }
    }
  }
}

void DepotLevel::lock_all() noexcept {
  for (unsigned i = 0; i < depots_.count(); ++i) depots_.at(i).mutex().lock();
}
void DepotLevel::unlock_all() noexcept {
  for (unsigned i = 0; i < depots_.count(); ++i) depots_.at(i).mutex().unlock();
}
void DepotLevel::reset_after_fork() noexcept {
  for (unsigned i = 0; i < depots_.count(); ++i) depots_.at(i).mutex().reset_after_fork();
}

}  // namespace terrace::heap
