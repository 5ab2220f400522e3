// SPDX-License-Identifier: MIT OR Apache-2.0
// The fast paths of malloc and free, whole. Everything else is one cold call away.
//
// `fast_path` is the only state they read. Until the heap is open, on the rungs without sequences, and while a companion lives
// (os/thread_state.h), its limits are 0 and every call takes the cold way. The one other check is whether the thread is
// registered with rseq (docs/adr/0012-a-thread-must-be-registered.md): one that waits for its vfork child is not.
#pragma once

#include "arch/sequences.h"
#include "base/hardened.h"
#include "heap/classes/size_class.h"
#include "level/slot.h"
#include "span/granule.h"
#include "span/window.h"

#include <bit>

namespace terrace::heap {

struct alignas(cache_line) FastPath {
  std::size_t size_limit = 0;        // sizes up to it are popped from the slot's words,
  std::size_t subline_limit = 0;     // sizes up to it from the words of the slot's own home
  std::size_t below_page_limit = 0;  // size_limit for a caller that aligns sizes of a page and more
  std::uintptr_t extent_16ths = 0;   // free: (address - base) / 16 below it may be looked up in the page map
  std::byte* base = nullptr;         // the window's
  std::byte* slots = nullptr;        // slot 0
  arch::Area area{};
};
static_assert(sizeof(FastPath) <= cache_line);
extern FastPath fast_path __attribute__((visibility("hidden")));

void* allocate_slow(std::size_t size) noexcept __attribute__((visibility("hidden"), cold, noinline));
void free_slow(void* p) noexcept __attribute__((visibility("hidden"), cold, noinline));
// For the forms of free that get a size or an alignment.
void free_sized_slow(void* p, std::size_t size) noexcept __attribute__((visibility("hidden"), cold, noinline));
void free_aligned_sized_slow(void* p, std::size_t size, std::size_t align) noexcept
    __attribute__((visibility("hidden"), cold, noinline));
void delete_sized_slow(void* p, std::size_t size) noexcept __attribute__((visibility("hidden"), cold, noinline));
void delete_aligned_slow(void* p, std::size_t align) noexcept __attribute__((visibility("hidden"), cold, noinline));
void delete_aligned_sized_slow(void* p, std::size_t size, std::size_t align) noexcept
    __attribute__((visibility("hidden"), cold, noinline));

// [H2] Between a limit and the other fields, for the compiler: it may not load them first. No instruction. For the processor
// see FastPathSwitch::publish().
TERRACE_INLINE void limit_first() noexcept { __asm__ volatile("" ::: "memory"); }

/// Requires that the thread has read a limit above 0.
TERRACE_INLINE bool has_slot(const FastPath& f) noexcept {
  limit_first();
  return arch::registered(f.area);
}

// Sub-line classes: the number is that of home 0's word, and the word of home n lies n words lower, so the stride is one word
// shorter. No branch separates the two kinds of classes, since a program's sizes are unpredictable.
template <std::size_t FastPath::*limit = &FastPath::size_limit, class Slow>
TERRACE_INLINE void* allocate_or(std::size_t size, Slow slow) noexcept(noexcept(slow())) {
  const FastPath& f = fast_path;
  const std::size_t last = size - 1;  // of 0 bytes: out of all limits
  if (last < f.*limit && has_slot(f)) [[likely]] {
    std::size_t below = 0;
    below -= last < f.subline_limit ? 1 : 0;
    __asm__("" : "+r"(below));  // 0 or -1 in a register: compilers prefer longer ways
    const std::size_t stride = level::slot_size + below * sizeof(Word);
    std::byte* origin = level::origin();
    __asm__("" : "+r"(origin));  // one address for the magazines and the table behind it
    const auto home = static_cast<std::uint8_t>(origin[level::from_origin_behind + last / SizeRule::quantum]);
    void* block;
    if (arch::pop_round<level::words_offset, level::popped_offset>(f.area, f.slots, stride, origin, home, block) ==
        arch::Sequence::done) [[likely]] {
      return block;
    }
  }
  return slow();
}

TERRACE_INLINE void* allocate(std::size_t size) noexcept {
  return allocate_or(size, [size]() noexcept { return allocate_slow(size); });
}

/// A block of a class that has one word per slot, or null: the cold way is the caller's.
TERRACE_INLINE void* allocate_from(HomeClass h) noexcept {
  const FastPath& f = fast_path;
  void* block;
  if (f.size_limit == 0 || !has_slot(f)) [[unlikely]]
    return nullptr;
  if (arch::pop_round<level::words_offset, level::popped_offset>(f.area, f.slots, level::slot_size, level::origin(), index(h),
                                                                 block) != arch::Sequence::done) [[unlikely]] {
    return nullptr;
  }
  return block;
}

// The rotation brings the low 4 bits to the top: a pointer that is not a multiple of 16 is out of range as well. With the base
// from before it was set, which is null, nothing is below the limit: so the base may be loaded first, and is loaded once.
TERRACE_INLINE std::uintptr_t offset_16ths(const std::byte* base, const void* p) noexcept {
  return std::rotr(address_of(p) - address_of(base), 4);
}
/// Requires an offset from that base below the limit.
TERRACE_INLINE std::uint8_t home_byte(const std::byte* base, std::uintptr_t offset_16ths) noexcept {
  const auto granule = static_cast<std::ptrdiff_t>(offset_16ths >> (span::granule_shift - 4));
  return static_cast<std::uint8_t>(base[granule - static_cast<std::ptrdiff_t>(span::Window::map_size)]);
}

template <class Slow>
TERRACE_INLINE void free_or(void* p, Slow slow) noexcept {
  const FastPath& f = fast_path;
  const std::byte* const base = f.base;
  const std::uintptr_t offset = offset_16ths(base, p);
  if (offset < f.extent_16ths && has_slot(f)) [[likely]] {
    const std::uint8_t home = home_byte(base, offset);
    // Home class 0 (no small block) has no magazine: full.
    if (arch::push_round<level::slot_shift, level::words_offset>(f.area, f.slots, level::origin(), home, p) ==
        arch::Sequence::done) [[likely]] {
      return;
    }
  }
  slow();
}

TERRACE_INLINE void free(void* p) noexcept {
  free_or(p, [p]() noexcept { free_slow(p); });
}

/// Whether realloc leaves the block where it is: a small one that fits. False: the cold way decides.
TERRACE_INLINE bool stays(const void* p, std::size_t size) noexcept {
  if constexpr (hardened) return false;  // where the block starts is checked, too
  const FastPath& f = fast_path;
  const std::byte* const base = f.base;
  const std::uintptr_t offset = offset_16ths(base, p);
  if (offset >= f.extent_16ths) return false;
  limit_first();
  return sizes_in_place[home_byte(base, offset)].has(size);
}

}  // namespace terrace::heap
