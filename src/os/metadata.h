// SPDX-License-Identifier: MIT OR Apache-2.0
// Memory for what the library itself keeps. No block of a program ever lies in it, and it never goes back: records, slots,
// depots and tables are for the life of a process.
//
// Each request is a mapping of its own: zeroed, at the start of a page, and resident only where it was touched. Tables for
// which TERRACE_CHECK asks, and in the hardened build all, lie between two pages that nobody may touch.
#pragma once

#include "base/bits.h"
#include "os/memory.h"

#include <cstddef>
#include <cstdint>

namespace terrace::os {

/// What metadata is for.
enum class Metadata : std::uint8_t {
  spans,       // page map and records, which have places of their own: counted here, mapped by span/window.cpp
  levels,      // slots of the core or thread level, depots
  checks,      // TERRACE_CHECK: registry, quarantine, guarded pages
  statistics,  // what a parent had counted before its child was forked
  arenas,      // of vmem: their state, segments, tables of what is allocated
  logs,        // UMEM_LOGGING
  profile,     // TERRACE_PROFILE: samples
  count_
};
inline constexpr std::size_t metadata_count = static_cast<std::size_t>(Metadata::count_);

/// Bytes, without guards, that were mapped so far; in a forked child, with those of the parent.
std::uint64_t metadata_bytes(Metadata purpose) noexcept;
void count_metadata(Metadata purpose, std::uint64_t bytes) noexcept;

/// Null when there is none.
void* map_metadata(Metadata purpose, std::size_t bytes) noexcept;
/// Zeroed memory for `count` objects; no constructor runs. Null when there is none.
template <class T>
T* map_metadata(Metadata purpose, std::size_t count) noexcept {
  static_assert(alignof(T) <= smallest_page, "a mapping begins at a page");
  std::size_t bytes = 0;
  if (__builtin_mul_overflow(sizeof(T), count, &bytes)) return nullptr;
  return static_cast<T*>(map_metadata(purpose, bytes));
}

/// A T in zeroed memory, mapped for the while: it is too long for a small stack, and malloc is not to be had.
template <class T>
class Scratch {
 public:
  Scratch() noexcept : object_(static_cast<T*>(map(sizeof(T)))) {}
  ~Scratch() {
    if (object_ != nullptr) release(object_, sizeof(T));
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  /// Null when there is no memory.
  T* get() const noexcept { return object_; }

 private:
  T* object_;
};

/// The same of several.
template <class T>
class Scratch<T[]> {
 public:
  explicit Scratch(std::size_t count) noexcept : objects_(static_cast<T*>(map(count * sizeof(T)))), bytes_(count * sizeof(T)) {}
  ~Scratch() {
    if (objects_ != nullptr) release(objects_, bytes_);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  /// Null when there is no memory.
  T* get() const noexcept { return objects_; }

 private:
  T* objects_;
  std::size_t bytes_;
};

}  // namespace terrace::os
