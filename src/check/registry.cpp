// SPDX-License-Identifier: MIT OR Apache-2.0
#include "check/registry.h"

#include "base/assert.h"
#include "os/metadata.h"

#include <utility>

namespace terrace::check {
namespace {

// Entries are mapped in chunks: as many as the stripe has blocks, within these. A chunk takes two mappings, for its guards, and
// the system bounds their number.
constexpr std::size_t shortest_chunk = 64 * kib / sizeof(Block), longest_chunk = mib / sizeof(Block);

void publish(Block*& link, Block* block) noexcept { __atomic_store_n(&link, block, __ATOMIC_RELEASE); }  // [R3]

[[maybe_unused]] bool is_listed(const Block* list, const std::byte* start) noexcept {
  while (list != nullptr && list->start != start) list = list->next;
  return list != nullptr;
}

}  // namespace

bool Registry::open() noexcept {
  buckets_ = os::map_metadata<Block*>(os::Metadata::checks, bucket_count);
  return buckets_ != nullptr;
}

// Entries that were used before come first: no page of a chunk is touched before it is needed. The stripe is locked.
Block* Registry::unused_entry(Stripe& s) noexcept {
  if (s.unused != nullptr) return std::exchange(s.unused, s.unused->next);
  if (s.fresh == s.fresh_end) {
    const std::size_t count = min_of(max_of(s.blocks, shortest_chunk), longest_chunk);
    auto* const chunk = os::map_metadata<Block>(os::Metadata::checks, count);
    if (chunk == nullptr) return nullptr;
    s.fresh = chunk;
    s.fresh_end = chunk + count;
  }
  return s.fresh++;
}

bool Registry::add(const Block& block) noexcept {
  const std::size_t bucket = bucket_of(block.start);
  Stripe& s = stripe(bucket);
  const os::LockGuard guard(s.mutex);
  TERRACE_ASSERT(!is_listed(buckets_[bucket], block.start), "R1: a block is registered twice");
  Block* const entry = unused_entry(s);
  if (entry == nullptr) return false;
  *entry = block;
  entry->next = buckets_[bucket];
  ++s.blocks;
  publish(buckets_[bucket], entry);
  return true;
}

void Registry::remove(const std::byte* start) noexcept {
  const std::size_t bucket = bucket_of(start);
  Stripe& s = stripe(bucket);
  const os::LockGuard guard(s.mutex);
  for (Block** link = &buckets_[bucket]; *link != nullptr; link = &(*link)->next) {
    Block* const b = *link;
    if (b->start != start) continue;
    publish(*link, b->next);
    --s.blocks;
    b->next = s.unused;
    s.unused = b;
    return;
  }
  TERRACE_ASSERT(false, "R1: a block that goes back to the heap is not registered");
}

void Registry::lock_all() noexcept {
  const os::LockOrder::TakesAll all;
  for (Stripe& s : stripes_) s.mutex.lock();
}
void Registry::unlock_all() noexcept {
  for (Stripe& s : stripes_) s.mutex.unlock();
}
void Registry::reset_after_fork() noexcept {
  for (Stripe& s : stripes_) s.mutex.reset_after_fork();
}

}  // namespace terrace::check
