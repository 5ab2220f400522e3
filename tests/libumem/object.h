// SPDX-License-Identifier: MIT OR Apache-2.0
// Objects whose constructor and destructor count, and see whether an object was left as it was made.
#pragma once

#include "umem.h"

#include <atomic>
#include <cstdint>

struct Counts {
  std::atomic<int> made{0}, undone{0}, reclaimed{0}, wrong{0};
  std::atomic<bool> refuses{false};
  int flags = -1;
};
struct Object {
  std::uint64_t mark;
  std::uint64_t value;
};
constexpr std::uint64_t mark = 0xfeedbeefcafe;

inline int construct(void* p, void* counts, int flags) {
  auto& c = *static_cast<Counts*>(counts);
  if (c.refuses) return -1;
  c.flags = flags;
  ++c.made;
  static_cast<Object*>(p)->mark = mark;
  return 0;
}
inline void destruct(void* p, void* counts) {
  auto& c = *static_cast<Counts*>(counts);
  ++c.undone;
  if (static_cast<Object*>(p)->mark != mark) ++c.wrong;
  static_cast<Object*>(p)->mark = 0;
}
inline void reclaim(void* counts) { ++static_cast<Counts*>(counts)->reclaimed; }
