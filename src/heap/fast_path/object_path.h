// SPDX-License-Identifier: MIT OR Apache-2.0
// The fast paths of an object cache: those of malloc and free, on words found by address instead of number. They are turned on
// and off with malloc's.
#pragma once

#include "heap/classes/page_values.h"
#include "heap/fast_path/fast_path.h"

namespace terrace::heap {

/// An object that was freed here, or null: the cold way is the caller's. `base`: CoreLevel::object_base().
TERRACE_INLINE void* allocate_object(std::byte* const& base) noexcept {
  const FastPath& f = fast_path;
  void* block;
  if (f.size_limit == 0 || !has_slot(f)) [[unlikely]]
    return nullptr;
  if (arch::pop_round<level::object_words_offset, level::object_popped_offset>(
          f.area, base, level::object_words_size, level::origin(), word_of_objects, block) != arch::Sequence::done)
      [[unlikely]] {
    return nullptr;
  }
  return block;
}

/// False: the caller takes the slow path. Checks that p is an object, but not of which cache.
TERRACE_INLINE bool free_object(std::byte* const& base, void* p) noexcept {
  const FastPath& f = fast_path;
  // Any object is at a multiple of 8, where malloc's blocks are at one of 16: the offset is in bytes.
  std::byte* const window = f.base;
  const std::uintptr_t offset = address_of(p) - address_of(window);
  if (offset / 16 >= f.extent_16ths || !has_slot(f)) [[unlikely]]
    return false;
  const auto granule = static_cast<std::ptrdiff_t>(offset >> span::granule_shift);
  const std::byte value = window[granule - static_cast<std::ptrdiff_t>(span::Window::map_size)];
  if (value != std::byte{object_values.first}) [[unlikely]]
    return false;
  return arch::push_round<level::object_words_shift, level::object_words_offset>(f.area, base, level::origin(), word_of_objects,
                                                                                 p) == arch::Sequence::done;
}

}  // namespace terrace::heap
