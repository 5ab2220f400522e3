// SPDX-License-Identifier: MIT OR Apache-2.0
// Segments: the boundary tags of an arena. Each describes a range of addresses and lies outside of it, so that an arena can
// hand out anything that has numbers. Segments of an arena are in one circular list in the order of addresses: each span's
// marker, followed by the free and allocated segments that the span is cut into. So the neighbours of a segment are found at
// once when it is freed, and a marker between two spans keeps them from being merged.
#pragma once

#include "base/described.h"

#include <cstddef>
#include <cstdint>

namespace terrace::vmem {

struct Segment {
  enum class Kind : std::uint8_t {
    unused,     // in a store of segments, or the list's anchor
    span,       // marker: start and size of a whole span
    free,       // in the list of its size
    allocated,  // in the table of allocated segments
    cached,     // as allocated, and in a quantum cache: freed by the program, not by the arena
  };

  std::uintptr_t start;
  std::size_t size;  // a multiple of the arena's quantum
  Segment *before, *after;
  // What else it is part of, by its kind. span: its children in the tree of spans. free: its neighbours in the list of its
  // size. allocated: `right`, the next in its bucket. cached: `left`, the next in the cache, and `right` as before. unused:
  // `right`, the next in the store.
  Segment *left, *right;
  std::size_t asked;  // allocated: the bytes that were asked for, at most `size`
  Kind kind;
  bool imported;  // span: its range came from the arena's source

  std::uintptr_t end() const noexcept { return start + size; }
};
static_assert(sizeof(Segment) == 64, "one cache line");

/// A list of segments by `right`, last in, first out.
class SegmentStack {
 public:
  bool empty() const noexcept { return head_ == nullptr; }
  std::size_t size() const noexcept { return size_; }
  void push(Segment& s) noexcept {
    s.right = head_;
    head_ = &s;
    ++size_;
  }
  /// Null when there is none.
  Segment* pop() noexcept {
    Segment* const s = head_;
    if (s == nullptr) return nullptr;
    head_ = s->right;
    --size_;
    return s;
  }

 private:
  Segment* head_ = nullptr;
  std::size_t size_ = 0;
};

/// The list of an arena in the order of addresses.
class SegmentList {
 public:
  SegmentList() noexcept { anchor_.before = anchor_.after = &anchor_; }
  SegmentList(const SegmentList&) = delete;
  SegmentList& operator=(const SegmentList&) = delete;

  /// Before the first and after the last; of kind `unused`, at address 0 and without size.
  Segment& anchor() noexcept { return anchor_; }
  const Segment& anchor() const noexcept { return anchor_; }

  static void insert_after(Segment& where, Segment& s) noexcept {
    s.before = &where;
    s.after = where.after;
    where.after->before = &s;
    where.after = &s;
  }
  static void remove(Segment& s) noexcept {
    s.before->after = s.after;
    s.after->before = s.before;
  }

 private:
  friend struct umem::Layout;
  Segment anchor_{};
};

}  // namespace terrace::vmem
