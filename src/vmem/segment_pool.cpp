// SPDX-License-Identifier: MIT OR Apache-2.0
#include "vmem/segment_pool.h"

#include "os/metadata.h"

#include <cstring>

namespace terrace::vmem {

namespace {
constexpr std::size_t segments_per_mapping = 64 * 1024 / sizeof(Segment);
constexpr unsigned pages_shift = 9;  // 2^9 pointers are a page of the smallest size: a table is a mapping of its own
}  // namespace

constinit SegmentPool segment_pool;

bool SegmentPool::grow(std::size_t count) noexcept {
  if (segments_.size() + untouched_count_ >= count) return true;
  auto* const s = os::map_metadata<Segment>(os::Metadata::arenas, segments_per_mapping);
  if (s == nullptr) return false;
  for (; untouched_count_ != 0; --untouched_count_) segments_.push(*untouched_++);
  untouched_ = s;
  untouched_count_ = segments_per_mapping;
  return true;
}

Segment& SegmentPool::take_one() noexcept {
  if (Segment* const s = segments_.pop()) return *s;
  --untouched_count_;
  return *untouched_++;
}

bool SegmentPool::take(SegmentStack& out, std::size_t count) noexcept {
  const os::LockGuard guard(mutex_);
  if (!grow(count)) return false;
  for (; count != 0; --count) out.push(take_one());
  return true;
}

void SegmentPool::give(SegmentStack& in, std::size_t count) noexcept {
  const os::LockGuard guard(mutex_);
  for (; count != 0; --count) segments_.push(*in.pop());
}

Segment** SegmentPool::take_table(unsigned shift) noexcept {
  if (shift < pages_shift) shift = pages_shift;
  const os::LockGuard guard(mutex_);
  Segment** const table = tables_[shift];
  if (table == nullptr) return os::map_metadata<Segment*>(os::Metadata::arenas, std::size_t{1} << shift);
  std::memcpy(&tables_[shift], table, sizeof tables_[shift]);
  std::memset(table, 0, sizeof(Segment*) << shift);
  return table;
}

void SegmentPool::give_table(Segment** table, unsigned shift) noexcept {
  if (shift < pages_shift) shift = pages_shift;
  const os::LockGuard guard(mutex_);
  std::memcpy(table, &tables_[shift], sizeof tables_[shift]);
  tables_[shift] = table;
}

}  // namespace terrace::vmem
