// SPDX-License-Identifier: MIT OR Apache-2.0
#include "heap/levels/depot_level.h"

#include "base/report.h"
#include "heap/levels/grants.h"
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

bool DepotLevel::map(const level::Depots::Layout& layout, level::Depots& depots) noexcept {
  if (layout.count == 0 || depots.exist()) return true;
  constexpr auto levels = os::Metadata::levels;
  const std::size_t bytes = std::size_t{layout.count} * layout.shards * layout.shard_bytes();
  auto* const shards = os::map_metadata<std::byte>(levels, bytes + layout.keys * layout.count * sizeof(std::uint16_t));
  if (shards == nullptr) return false;
  depots.open(layout, shards, reinterpret_cast<std::uint16_t*>(shards + bytes));
  return true;
}

bool DepotLevel::open(const level::Depots::Layout& layout) noexcept {
  layout_ = layout;
  const unsigned shards = layout.count * layout.shards;
  if (shards != 0 && tables_ == nullptr) tables_ = os::map_metadata<RoundsByHash>(os::Metadata::levels, shards);
  return map(layout, depots_) && (shards == 0 || tables_ != nullptr);
}

bool DepotLevel::open_objects(unsigned chunk) noexcept {
  level::Depots::Layout layout = layout_;
  layout.keys = level::objects_per_chunk;
  return map(layout, objects_[chunk]);
}

Magazine DepotLevel::take(const Locality& here, Wanted& wanted) noexcept {
  if (!depots_.exist()) return {};
  const level::Taken taken = depots_for(wanted.h).take(here, key_for(wanted.h));
  if (taken.magazine) {
    budget_.release(bytes_in(wanted.h, taken.magazine.count()));
    wanted.foreign = taken.foreign;
  }
  return taken.magazine;
}

bool DepotLevel::give(const Locality& here, Magazine& m) noexcept {
  if (!depots_.exist() || m.count() == 0) return false;
  const HomeClass h = slabs_.slabs().home_of(m);
  if (!reserve(h, m.count())) return false;
  const Place own = depots_.place(here);
  if (const void* const twice = duplicate_in(m, tables_, depots_.count(), own.depot * depots_.shards() + own.shard))
    report_double_free(function_that_frees(h), twice);
  if (depots_for(h).put(here, key_for(h), m)) return true;
  budget_.release(bytes_in(h, m.count()));
  return false;
}

bool DepotLevel::reserve(HomeClass h, unsigned blocks) noexcept {
  const std::uint64_t bytes = bytes_in(h, blocks);
  if (budget_.reserve(bytes)) return true;
  if (budget_.refused(weight_of_refusal(blocks, class_of(h)))) budget_.look_for_burst(os::coarse_milliseconds());
  // relaxed: of two classes that were refused one may be forgotten.
  if (refusals_.add() % refusals_between_reclaims == 0)
    refused_.store(static_cast<std::uint16_t>(index(h)), std::memory_order_relaxed);
  return budget_.reserve(bytes);
}

void DepotLevel::make_room(const Locality& here) noexcept {
  if (!wants_room()) return;
  const HomeClass h = home_at(refused_.exchange(0, std::memory_order_relaxed));
  if (index(h) == 0) return;
  reclaim();
  give_up_oldest(depots_for(h).at(depots_.place(here)), key_for(h), h);
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
    while (give_up_oldest(shard, key, home_at(key))) {
    }
  }
}

// The oldest magazine of a stack, of class h unless it is an empty one, goes to the slabs. False: there was none.
bool DepotLevel::give_up_oldest(level::Shard& shard, std::size_t key, HomeClass h) noexcept {
  const Magazine m = shard.pop_oldest(key);
  if (!m) return false;
  if (m.count() != 0) budget_.release(bytes_in(h, m.count()));
  slabs_.empty(m);
  return true;
}

// Up to `most` magazines of a key in each shard, the oldest first.
void DepotLevel::drain_key(level::Depots& depots, std::size_t key, HomeClass h, unsigned most) noexcept {
  for (Place place; place.depot < depots.depots(); ++place.depot) {
    for (unsigned left = depots.marks(place.depot, key); left != 0; left &= left - 1) {
      place.shard = static_cast<unsigned>(std::countr_zero(left));
      unsigned n = 0;
      while (n < most && give_up_oldest(depots.at(place), key, h)) ++n;
      if (n < most) depots.unmark_if_empty(place, key);
    }
  }
}

namespace {

constexpr unsigned all = level::magazines_per_stack;

}  // namespace

// body(h) for each class of objects that are not prepared.
template <class Body>
void DepotLevel::for_each_unprepared(Body body) noexcept {
  if (!depots_.exist()) return;
  object_classes.for_each([&](HomeClass h) {
    if (!object_classes.is_prepared(ObjectClasses::chunk(h))) body(h);
  });
}

// noinline, as age_objects(): neither adds to the stack of the other.
__attribute__((noinline)) bool DepotLevel::age_memory() noexcept {
  const std::uint32_t depots = depots_.depots();
  const std::uint32_t groups = static_cast<std::uint32_t>(level::depot_keys) * depots;
  for (std::uint32_t given_up = 0; round_stacks_ < groups; ++round_stacks_) {
    if (given_up >= magazines_in_a_piece) return false;
    const std::size_t key = round_stacks_ / depots;
    Place place{.depot = round_stacks_ % depots};
    for (unsigned left = depots_.marks(place.depot, key); left != 0; left &= left - 1) {
      place.shard = static_cast<unsigned>(std::countr_zero(left));
      if (give_up_oldest(depots_.at(place), key, home_at(key))) {
        ++given_up;
      } else {
        depots_.unmark_if_empty(place, key);
      }
    }
  }
  round_stacks_ = 0;
  return true;
}

__attribute__((noinline)) void DepotLevel::age_objects() noexcept {
  for_each_unprepared([this](HomeClass h) { drain_key(depots_for(h), key_for(h), h, 1); });
}

bool DepotLevel::age() noexcept {
  if (!depots_.exist()) return true;
  if (!age_memory()) return false;
  age_objects();
  return true;
}

// A stack that somebody wanted since the last look loses its oldest magazine, any other all.
void DepotLevel::age_prepared(HomeClass h) noexcept {
  if (!depots_.exist()) return;
  level::Depots& depots = depots_for(h);
  const std::size_t key = key_for(h);
  for (Place place; place.depot < depots.depots(); ++place.depot) {
    for (unsigned left = depots.marks(place.depot, key); left != 0; left &= left - 1) {
      place.shard = static_cast<unsigned>(std::countr_zero(left));
      level::Shard& shard = depots.at(place);
      for (unsigned n = shard.was_recent(key) ? 1 : all; n != 0 && give_up_oldest(shard, key, h); --n) {
      }
      shard.was_recent(key);  // what was given up was no wish
      depots.unmark_if_empty(place, key);
    }
  }
}

void DepotLevel::drain() noexcept {
  for_each_unprepared([this](HomeClass h) { drain_objects(h); });
  for (std::size_t key = 0; key < level::depot_keys; ++key) drain_key(depots_, key, home_at(key), all);
}

void DepotLevel::drain_objects(HomeClass h) noexcept { drain_key(depots_for(h), key_for(h), h, all); }

std::uint64_t DepotLevel::blocks_of(HomeClass h) noexcept {
  level::Depots& depots = depots_for(h);
  std::uint64_t n = 0;
  for (unsigned i = 0; i < depots.count(); ++i) {
    const level::StackCounters& c = depots.at(i).counters(key_for(h));
    n += c.blocks_in.read() - c.blocks_out.read();
  }
  return n;
}

template <class Body>
void DepotLevel::for_each_shard(Body body) noexcept {
  for (unsigned i = 0; i < depots_.count(); ++i) body(depots_.at(i));
  for (unsigned chunk = 0, end = object_classes.chunks(); chunk < end; ++chunk) {
    for (unsigned i = 0; i < objects_[chunk].count(); ++i) body(objects_[chunk].at(i));
  }
}

void DepotLevel::lock_all() noexcept {
  const os::LockOrder::TakesAll all_of_them;
  for_each_shard([](level::Shard& shard) { shard.mutex().lock(); });
}
void DepotLevel::unlock_all() noexcept {
  for_each_shard([](level::Shard& shard) { shard.mutex().unlock(); });
}
void DepotLevel::reset_after_fork() noexcept {
  for_each_shard([](level::Shard& shard) { shard.mutex().reset_after_fork(); });
  for (unsigned i = 0; i < depots_.count(); ++i) tables_[i].reset_after_fork();
}

}  // namespace terrace::heap
