// SPDX-License-Identifier: MIT OR Apache-2.0
#include "check/quarantine.h"

#include "os/metadata.h"

namespace terrace::check {
namespace {

constexpr std::size_t per_block = 64;  // what a block costs beside its own bytes: zones and entries

}  // namespace

bool Quarantine::open(std::uint64_t bound) noexcept {
  bound_ = bound;
  ring_ = os::map_metadata<Freed>(os::Metadata::checks, capacity);
  return ring_ != nullptr;
}

bool Quarantine::put(Freed block) noexcept {
  const os::LockGuard guard(mutex_);
  if (end_ - first_ == capacity) return false;
  ring_[end_ % capacity] = block;
  ++end_;
  bytes_ += block.size + per_block;
  return true;
}

Quarantine::Freed Quarantine::evict() noexcept {
  const os::LockGuard guard(mutex_);
  if (first_ == end_ || (bytes_ <= bound_ && end_ - first_ <= capacity - headroom)) return {};
  const Freed oldest = ring_[first_ % capacity];
  ++first_;
  TERRACE_ASSERT(bytes_ >= oldest.size + per_block, "quarantine: its bytes are not the sum of what waits");
  bytes_ -= oldest.size + per_block;
  return oldest;
}

}  // namespace terrace::check
