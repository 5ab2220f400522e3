// SPDX-License-Identifier: MIT OR Apache-2.0
#pragma once

#include "allocator.h"

#include <cstring>
#include <gtest/gtest.h>
#include <memory>
#include <vector>

namespace api {

inline constexpr std::size_t kib = 1024;
inline constexpr std::size_t mib = 1024 * kib;
inline constexpr std::size_t gib = 1024 * mib;

// No process can have these: more than PTRDIFF_MAX, or more than there are addresses.
inline const std::vector<std::size_t>& impossible_sizes() {
  static const std::vector<std::size_t> sizes = {
      SIZE_MAX,          SIZE_MAX - 1,         SIZE_MAX - 15,        SIZE_MAX - 16,        SIZE_MAX - 4095,
      SIZE_MAX - 4096,   SIZE_MAX - 65535,     SIZE_MAX - mib,       SIZE_MAX / 2 + 1,     SIZE_MAX / 2,
      SIZE_MAX / 2 - 15, std::size_t{1} << 62, std::size_t{1} << 52, std::size_t{1} << 48, (std::size_t{1} << 47) + 1};
  return sizes;
}

// Sizes around everything an allocator could have a boundary at.
inline std::vector<std::size_t> boundary_sizes(std::size_t largest) {
  std::vector<std::size_t> sizes = {0, 1};
  for (std::size_t power = 2; power <= largest; power *= 2) {
    for (const std::size_t base : {power, power + power / 4, power + power / 2, power + power / 4 * 3}) {
      for (const std::ptrdiff_t delta : {-17, -16, -1, 0, 1, 8, 16}) {
        const std::size_t size = base + static_cast<std::size_t>(delta);
        if (size <= largest) sizes.push_back(size);
      }
    }
  }
  return sizes;
}

struct Free {
  void operator()(void* p) const { api::free(p); }
};
// Freed at the end of the scope, also when an assertion returns early.
using Owned = std::unique_ptr<void, Free>;
inline Owned own(void* p) { return Owned(p); }

inline unsigned char pattern(std::size_t seed, std::size_t i) {
  return static_cast<unsigned char>((seed * 131 + i * 7 + i / 251) | 1);  // never 0
}

inline void fill(void* p, std::size_t size, std::size_t seed) {
  auto* const bytes = static_cast<unsigned char*>(p);
  for (std::size_t i = 0; i < size; ++i) bytes[i] = pattern(seed, i);
}

// The first byte that is not as fill() left it, or `size`.
inline std::size_t first_difference(const void* p, std::size_t size, std::size_t seed) {
  const auto* const bytes = static_cast<const unsigned char*>(p);
  for (std::size_t i = 0; i < size; ++i) {
    if (bytes[i] != pattern(seed, i)) return i;
  }
  return size;
}

inline bool all_zero(const void* p, std::size_t size) {
  const auto* const bytes = static_cast<const unsigned char*>(p);
  return size == 0 || (bytes[0] == 0 && std::memcmp(bytes, bytes + 1, size - 1) == 0);
}

// errno that no function sets.
inline constexpr int untouched_errno = 12345;

}  // namespace api
