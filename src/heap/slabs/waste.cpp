// SPDX-License-Identifier: MIT OR Apache-2.0
// Slabs: which free blocks hold pages, and giving those pages back.
#include "base/assert.h"
#include "base/report.h"
#include "heap/slabs/sectors.h"
#include "heap/slabs/slabs.h"
#include "os/threads.h"

namespace terrace::heap {

using span::GranuleIndex;
using span::no_granule;

namespace {

constexpr std::uint64_t worth_purging = 16 * kib;  // in one slab, by whoever frees: a system call, and faults later
constexpr std::uint64_t worth_a_look = 2 * kib;    // less may be a page that holds a spacer, or a part of a block

constexpr std::uint32_t pages_per_granule = span::granule_size / os::smallest_page;

// The next block from `i` on whose bit is as wanted; `end` when there is none.
std::uint32_t next_block(const SlabRecord& r, std::uint32_t i, std::uint32_t end, bool free) noexcept {
  while (i < end) {
    const std::uint64_t word = (free ? r.free_map[i / 64] : ~r.free_map[i / 64]) >> i % 64;
    if (word != 0) return min_of(i + static_cast<std::uint32_t>(std::countr_zero(word)), end);
    i = (i / 64 + 1) * 64;
  }
  return end;
}

// Sectors in which a block is in use.
Sectors::Mask used_sectors(const SlabRecord& r, const Sectors& sectors) noexcept {
  Sectors::Mask used = 0;
  const std::uint32_t blocks = r.block_count;
  for (std::uint32_t i = next_block(r, 0, blocks, false); i < blocks;) {
    const std::uint32_t end = next_block(r, i, blocks, true);
    used |= sectors.touched_by({i, end});
    i = next_block(r, end, blocks, false);
  }
  return used;
}

// Marks all blocks that lie in these sectors free, or not. How many were not so before.
std::uint32_t mark(SlabRecord& r, const Sectors& sectors, Sectors::Mask mask, bool free) noexcept {
  std::uint32_t changed = 0;
  Sectors::for_each_run(mask, [&](std::uint32_t first, std::uint32_t end) {
    const BlockRange blocks = sectors.blocks_in(first, end);
    for (std::uint32_t i = blocks.first; i < blocks.end; ++i) {
      const std::uint64_t bit = std::uint64_t{1} << i % 64;
      if (((r.free_map[i / 64] & bit) != 0) == free) continue;
      r.free_map[i / 64] ^= bit;
      ++changed;
    }
  });
  return changed;
}

}  // namespace

void Slabs::enter(HomeClass h, GranuleIndex first, In in) noexcept {
  SlabRecord& r = slab(first);
  r.list = static_cast<std::uint8_t>(in);
  if (in == In::none) return;
  List& l = list(h, first, in);
  r.previous = no_granule;
  r.next = l.first;
  (l.first != no_granule ? slab(l.first).previous : l.last) = first;
  l.first = first;
}

void Slabs::leave(HomeClass h, GranuleIndex first) noexcept {
  const SlabRecord& r = slab(first);
  if (r.list == static_cast<std::uint8_t>(In::none)) return;
  List& l = list(h, first, In{r.list});
  (r.previous == no_granule ? l.first : slab(r.previous).next) = r.next;
  (r.next == no_granule ? l.last : slab(r.next).previous) = r.previous;
}

void Slabs::count_holes(HomeClass h, SlabRecord& r) noexcept {
  const Sectors sectors(shape(h), r.block_offset);
  std::uint32_t holes = 0, next = 0;  // a block may lie in two runs
  Sectors::for_each_run(r.purged, [&](std::uint32_t first, std::uint32_t end) {
    const BlockRange blocks = sectors.blocks_in(first, end);
    const std::uint32_t from = max_of(blocks.first, next);
    if (blocks.end > from) holes += blocks.end - from;
    next = max_of(blocks.end, next);
  });
  resident_.add((std::uint64_t{r.waste.holes} - holes) * shape(h).stride);  // modulo 2^64
  r.waste.holes = static_cast<std::uint16_t>(holes);
}

// Blocks that were cut have pages from now on, and so do others that share sectors with them.
void Slabs::fill_holes(HomeClass h, SlabRecord& r, const std::uint64_t* numbers, unsigned n) noexcept {
  if (r.purged == 0) return;
  const Sectors sectors(shape(h), r.block_offset);
  Sectors::Mask touched = 0;
  for (unsigned i = 0; i < n;) {
    unsigned end = i + 1;
    while (end < n && numbers[end] + 1 == numbers[end - 1]) ++end;
    touched |= sectors.touched_by({static_cast<std::uint32_t>(numbers[end - 1]), static_cast<std::uint32_t>(numbers[i]) + 1});
    i = end;
  }
  if ((r.purged & touched) == 0) return;
  r.purged &= ~touched;
  count_holes(h, r);
}

// After any change of the slab's free blocks or holes. `all`: what was stuck is looked at again.
void Slabs::count_waste(HomeClass h, GranuleIndex first, bool all) noexcept {
  TERRACE_ASSERT(os::LockOrder::holds(os::Rank::slabs), "slabs: one is changed without its class's lock");
  SlabRecord& r = slab(first);
  TERRACE_ASSERT(r.free_blocks <= r.block_count && r.waste.holes <= r.block_count, "slabs: more are free than there are");
  const std::uint32_t resident = resident_blocks(r);
  const auto used = static_cast<std::uint16_t>(r.block_count - r.free_blocks);
  const bool few = used < shape(h).granules * pages_per_granule && !has_own_pages(shape(h));
  if (all || used < r.waste.looked - (few ? 0 : r.waste.looked / 4)) r.waste.stuck = 0;
  r.waste.looked = max_of(r.waste.looked, used);
  r.waste.stuck = static_cast<std::uint16_t>(min_of<std::uint32_t>(r.waste.stuck, resident));
  const std::uint64_t stride = shape(h).stride;
  auto counted = static_cast<std::uint16_t>(resident - r.waste.stuck);
  if (counted * stride < worth_a_look) counted = 0;
  if (counted != r.waste.counted) waste_.add((std::uint64_t{counted} - r.waste.counted) * stride);
  r.waste.counted = counted;
  const In wanted = r.free_blocks == 0 ? In::none : counted != 0 ? In::resident : In::bare;
  if (static_cast<std::uint8_t>(wanted) == r.list) return;
  leave(h, first);
  enter(h, first, wanted);
}

// Worth a system call, and the process has more of it than it may keep.
bool Slabs::wasteful(HomeClass h, const SlabRecord& r) noexcept {
  return std::uint64_t{r.waste.counted} * shape(h).stride >= worth_purging && waste_.read() > spans_->may_keep(refaults_);
}

// The free blocks of the sectors leave the slab, as if they were cut. How many.
std::uint32_t Slabs::take_out(HomeClass h, GranuleIndex first, std::uint64_t sectors) noexcept {
  SlabRecord& r = slab(first);
  if (r.free_blocks == r.block_count) --class_at(h).empty;
  const std::uint32_t out = mark(r, Sectors(shape(h), r.block_offset), sectors, false);
  r.free_blocks = static_cast<std::uint16_t>(r.free_blocks - out);
  count_waste(h, first);
  return out;
}

// They come back. How many.
std::uint32_t Slabs::put_in(HomeClass h, GranuleIndex first, std::uint64_t sectors) noexcept {
  SlabRecord& r = slab(first);
  const std::uint32_t in = mark(r, Sectors(shape(h), r.block_offset), sectors, true);
  r.scan = 0;
  r.free_blocks = static_cast<std::uint16_t>(r.free_blocks + in);
  if (r.free_blocks == r.block_count) ++class_at(h).empty;
  return in;
}

Slabs::Leaving* Slabs::unused_leaving(Class& c) noexcept {
  for (Leaving& l : c.leaving) {
    if (l.sectors == 0) return &l;
  }
  return nullptr;
}

// In which no block is in use, and that are not purged.
std::uint64_t Slabs::unused_sectors(HomeClass h, const SlabRecord& r) const noexcept {
  const Sectors sectors(shape(h), r.block_offset);
  return sectors.all() & ~r.purged & ~used_sectors(r, sectors);
}

// The system calls.
Slabs::Gone Slabs::purge_sectors(HomeClass h, GranuleIndex first, std::uint64_t mask) noexcept {
  const Sectors sectors(shape(h), slab(first).block_offset);
  Gone gone;
  Sectors::for_each_run(mask, [&](std::uint32_t from, std::uint32_t end) {
    const std::uint32_t length = sectors.offset(end) - sectors.offset(from);
    if (!os::purge(spans_->window().address(first) + sectors.offset(from), length)) return;
    gone.sectors |= sectors.between(from, end);
    gone.bytes += length;
  });
  return gone;
}

// Gives back the sectors of a slab in which no block is in use. Meanwhile their blocks are taken out, so that the class need
// not be locked around the system calls: nobody cuts them, and the slab is not released. What was taken out is written down for
// a child of fork. Where too many threads do the same with slabs of the class, there is no room for that, and the lock is kept.
void Slabs::purge_free_pages(HomeClass h, GranuleIndex first) noexcept {
  Gone gone;
  if (const Sectors::Mask mask = unused_sectors(h, slab(first)); mask != 0) {
    Class& c = class_at(h);
    const std::uint32_t out = take_out(h, first, mask);
    Leaving* const leaving = unused_leaving(c);
    if (leaving != nullptr) {
      *leaving = {.sectors = mask, .thread = os::this_thread(), .slab = first};
      c.mutex.unlock();
    }
    gone = purge_sectors(h, first, mask);
    if (leaving != nullptr) {
      c.mutex.lock();
      *leaving = {};
    }
    // A block that came back meanwhile is in use nowhere: it was freed before, too.
    if (put_in(h, first, mask) != out) report_double_free(function_that_frees(h), spans_->window().address(first));
  }
  count_purged(h, first, gone);
}

void Slabs::count_purged(HomeClass h, GranuleIndex first, Gone gone) noexcept {
  SlabRecord& r = slab(first);
  if (gone.bytes != 0) {
    r.purged |= gone.sectors;
    class_at(h).counters.purged_bytes.add(gone.bytes);
    if (has_own_pages(shape(h))) refaults_.on_purge(gone.bytes);
    count_holes(h, r);
  }
  r.waste.looked = static_cast<std::uint16_t>(r.block_count - r.free_blocks);
  r.waste.stuck = static_cast<std::uint16_t>(resident_blocks(r));
  count_waste(h, first);
}

// The same, and the slab goes if it is free by now.
void Slabs::purge_slab(HomeClass h, GranuleIndex first) noexcept {
  purge_free_pages(h, first);
  if (slab(first).free_blocks == slab(first).block_count && class_at(h).empty > 1) release_slab(h, first);
}

// The pages may be there or not: resident is right for both. If it is this thread that was interrupted by a handler that forks,
// it goes on here, and puts them back itself.
void Slabs::repair_in_child(HomeClass h) noexcept {
  for (Leaving& l : class_at(h).leaving) {
    if (l.sectors == 0 || l.thread == os::this_thread()) continue;
    put_in(h, l.slab, l.sectors);
    count_waste(h, l.slab);
    l = {};
  }
}

// The slab that has had waste for longest comes first.
void Slabs::purge_class(HomeClass h, std::uint64_t bytes) noexcept {
  Class& c = class_at(h);
  const os::LockGuard guard(c.mutex);
  for (unsigned node = 0; node < nodes_; ++node) {
    while (lists(h, node).resident.last != no_granule && waste_.read() > bytes) {
      const GranuleIndex first = lists(h, node).resident.last;
      const SlabRecord& r = slab(first);
      if (r.free_blocks == r.block_count) {
        release_slab(h, first);
      } else {
        purge_slab(h, first);
      }
    }
  }
}

void Slabs::purge_down_to(std::uint64_t bytes) noexcept {
  for (std::size_t i = 1; i < slab_class_count && waste_.read() > bytes; ++i) {
    hand_ = hand_ % static_cast<std::uint32_t>(slab_class_count - 1) + 1;
    purge_class(home_at(hand_), bytes);
  }
  object_classes.for_each([&](HomeClass h) {
    if (waste_.read() > bytes) purge_class(h, bytes);
  });
}

// body(slab), which may take it out of its list. The class is locked.
template <class Body>
void Slabs::for_each_bare(HomeClass h, Body body) noexcept {
  for (unsigned node = 0; node < nodes_; ++node) {
    for (GranuleIndex i = lists(h, node).bare.first, next = no_granule; i != no_granule; i = next) {
      next = slab(i).next;
      body(i);
    }
  }
}

// Slabs of which a block has gone since they were looked at; `all`: any that may have a free page.
void Slabs::look_again(HomeClass h, bool all) noexcept {
  Class& c = class_at(h);
  const os::LockGuard guard(c.mutex);
  for_each_bare(h, [&](GranuleIndex i) {
    const SlabRecord& r = slab(i);
    if (r.waste.stuck != 0 && (all || r.block_count - r.free_blocks < r.waste.looked)) count_waste(h, i, true);
  });
}

void Slabs::tick() noexcept {
  refaults_.fade();
  for_each_class([this](HomeClass h) { look_again(h, false); });
  purge_down_to(spans_->may_keep(refaults_));
}

void Slabs::trim() noexcept {
  for_each_class([this](HomeClass h) { trim(h); });
}

void Slabs::trim(HomeClass h) noexcept {
  look_again(h, true);
  purge_class(h, 0);
  Class& c = class_at(h);
  const os::LockGuard guard(c.mutex);
  for_each_bare(h, [&](GranuleIndex i) {
    if (slab(i).free_blocks == slab(i).block_count) release_slab(h, i);
  });
}

// Those with waste, whatever excess is accepted elsewhere, then the others.
bool Slabs::release_all(HomeClass h) noexcept {
  {
    Class& c = class_at(h);
    const os::LockGuard guard(c.mutex);
    for (unsigned node = 0; node < nodes_; ++node) {
      for (const In in : {In::resident, In::bare}) {
        for (GranuleIndex i = list_of(h, node, in).first, next = no_granule; i != no_granule; i = next) {
          next = slab(i).next;
          if (slab(i).free_blocks == slab(i).block_count) release_slab(h, i);
        }
      }
    }
  }
  spans_->settle();
  return counters(h).slabs_made.read() == counters(h).slabs_released.read();
}

}  // namespace terrace::heap
