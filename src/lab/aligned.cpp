// SPDX-License-Identifier: MIT OR Apache-2.0
// Objects that need more than the alignment of all: a longer range is taken, and what lies around the object is filled.
#include "lab/heap.h"

namespace terrace::lab {

// The first multiple of `alignment` before which there is nothing, or enough for a filler.
std::uint64_t Heap::aligned_start(std::uint64_t start, std::size_t alignment) const noexcept {
  std::uint64_t at = round_up(start, alignment);
  while (at != start && at - start < min_fill_) at += alignment;
  return at;
}

void Heap::pad(Thread& thread, Range gap) noexcept {
  thread.padding_bytes.add(gap.size());
  fill(gap);
}

void* Heap::allocate_aligned(Thread& thread, std::size_t size, std::size_t alignment) noexcept {
  if (alignment <= config_.alignment) return allocate(thread, size);
  if (thread.top != 0) {
    const std::uint64_t at = aligned_start(thread.top, alignment);
    if (at <= thread.end && size <= thread.end - at) {
      pad(thread, {thread.top, at});
      thread.top = at + size;
      return pointer_to(at);
    }
  }
  // Before the object at most min_fill + alignment - granule, so there is a filler's length behind it in any case.
  const std::size_t bytes = size + alignment + 2 * min_fill_;
  const auto start = reinterpret_cast<std::uintptr_t>(allocate(thread, bytes));
  if (start == 0) return nullptr;
  const std::uint64_t at = aligned_start(start, alignment);
  pad(thread, {start, at});
  if (thread.start <= start && thread.top == start + bytes) {  // from the TLAB
    thread.top = at + size;
  } else {
    pad(thread, {at + size, start + bytes});
  }
  return pointer_to(at);
}

}  // namespace terrace::lab
