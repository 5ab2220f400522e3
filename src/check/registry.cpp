// SPDX-License-Identifier: MIT OR Apache-2.0
#include "check/registry.h"

#include "base/assert.h"
#include "os/guard_pages.h"
#include "os/memory.h"

namespace terrace::check {
namespace {

constexpr std::size_t chunk_bytes = 64 * kib;

void publish(Block*& link, Block* block) noexcept { __atomic_store_n(&link, block, __ATOMIC_RELEASE); }  // [R3]

[[maybe_unused]] bool is_listed(const Block* list, const std::byte* start) noexcept {
  while (list != nullptr && list->start != start) list = list->next;
  return list != nullptr;
}

}  // namespace

bool Registry::open() noexcept {
  buckets_ = static_cast<Block**>(os::map_between_guards(bucket_count * sizeof(Block*)));
  return buckets_ != nullptr;
}

// A list of unused entries.
Block* Registry::make_blocks() noexcept {
  auto* const blocks = static_cast<Block*>(os::map(chunk_bytes));
  if (blocks == nullptr) return nullptr;
  for (std::size_t i = 0; i + 1 < chunk_bytes / sizeof(Block); ++i) blocks[i].next = &blocks[i + 1];
  return blocks;
}

bool Registry::add(const Block& block) noexcept {
  const std::size_t bucket = bucket_of(block.start);
  Stripe& s = stripe(bucket);
  const os::LockGuard guard(s.mutex);
  TERRACE_ASSERT(!is_listed(buckets_[bucket], block.start), "R1: a block is registered twice");
  if (s.unused == nullptr) s.unused = make_blocks();
  Block* const entry = s.unused;
  if (entry == nullptr) return false;
  s.unused = entry->next;
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
  for (Stripe& s : stripes_) s.mutex.lock();
}
void Registry::unlock_all() noexcept {
  for (Stripe& s : stripes_) s.mutex.unlock();
}
void Registry::reset_after_fork() noexcept {
  for (Stripe& s : stripes_) s.mutex.reset_after_fork();
}

}  // namespace terrace::check
