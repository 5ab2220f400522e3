// SPDX-License-Identifier: MIT OR Apache-2.0
#include "vmem/span_tree.h"

#include "base/random.h"

namespace terrace::vmem {

namespace {

// A parent's is not below its children's.
std::uint64_t priority(const Segment& span) noexcept { return mixed(span.start); }

}  // namespace

void SpanTree::insert(Segment& span) noexcept {
  Segment** link = &root_;
  while (*link != nullptr && priority(**link) >= priority(span))
    link = (*link)->start < span.start ? &(*link)->right : &(*link)->left;
  // The subtree that was here is split at the new span, along one path.
  Segment* rest = *link;
  *link = &span;
  Segment **below = &span.left, **above = &span.right;
  while (rest != nullptr) {
    if (rest->start < span.start) {
      *below = rest;
      below = &rest->right;
      rest = rest->right;
    } else {
      *above = rest;
      above = &rest->left;
      rest = rest->left;
    }
  }
  *below = *above = nullptr;
  ++size_;
}

void SpanTree::remove(Segment& span) noexcept {
  Segment** link = &root_;
  while (*link != &span) link = (*link)->start < span.start ? &(*link)->right : &(*link)->left;
  // Its two subtrees are joined, along one path.
  Segment *below = span.left, *above = span.right;
  while (below != nullptr && above != nullptr) {
    if (priority(*below) >= priority(*above)) {
      *link = below;
      link = &below->right;
      below = below->right;
    } else {
      *link = above;
      link = &above->left;
      above = above->left;
    }
  }
  *link = below != nullptr ? below : above;
  --size_;
}

Segment* SpanTree::at_or_below(std::uintptr_t address) const noexcept {
  Segment* found = nullptr;
  for (Segment* s = root_; s != nullptr;) {
    if (s->start > address) {
      s = s->left;
    } else {
      found = s;
      s = s->right;
    }
  }
  return found;
}

Segment* SpanTree::above(std::uintptr_t address) const noexcept {
  Segment* found = nullptr;
  for (Segment* s = root_; s != nullptr;) {
    if (s->start > address) {
      found = s;
      s = s->left;
    } else {
      s = s->right;
    }
  }
  return found;
}

bool SpanTree::overlaps(std::uintptr_t start, std::size_t size) const noexcept {
  const Segment* const last = at_or_below(start + size - 1);
  return last != nullptr && last->end() > start;
}

}  // namespace terrace::vmem
