// SPDX-License-Identifier: MIT OR Apache-2.0
#include "vmem/allocated_table.h"

#include "base/random.h"
#include "vmem/segment_pool.h"

namespace terrace::vmem {

namespace {
constexpr unsigned growth = 5;  // 16 buckets, then a page of the smallest size
}

Segment*& AllocatedTable::bucket(std::uintptr_t start) const noexcept {
  return buckets_[mixed(start) & ((std::size_t{1} << shift_) - 1)];
}

void AllocatedTable::insert(Segment& s) noexcept {
  if (size_ >= most_per_bucket << shift_) grow();
  Segment*& head = bucket(s.start);
  s.right = head;
  head = &s;
  ++size_;
}

void AllocatedTable::remove(Segment& s) noexcept {
  Segment** link = &bucket(s.start);
  while (*link != &s) link = &(*link)->right;
  *link = s.right;
  --size_;
}

Segment* AllocatedTable::find(std::uintptr_t start) const noexcept {
  Segment* s = bucket(start);
  while (s != nullptr && s->start != start) s = s->right;
  return s;
}

void AllocatedTable::grow() noexcept {
  Segment** const old = buckets_;
  const unsigned old_shift = shift_, shift = old == small_ ? small_shift + growth : shift_ + 1;
  Segment** const table = segment_pool.take_table(shift);
  if (table == nullptr) return;
  buckets_ = table;
  shift_ = shift;
  for (std::size_t i = 0; i < std::size_t{1} << old_shift; ++i) {
    for (Segment *s = old[i], *next = nullptr; s != nullptr; s = next) {
      next = s->right;
      Segment*& head = bucket(s->start);
      s->right = head;
      head = s;
    }
  }
  if (old != small_) segment_pool.give_table(old, old_shift);
}

void AllocatedTable::clear() noexcept {
  if (buckets_ != small_) segment_pool.give_table(buckets_, shift_);
  for (Segment*& head : small_) head = nullptr;
  buckets_ = small_;
  shift_ = small_shift;
  size_ = 0;
}

}  // namespace terrace::vmem
