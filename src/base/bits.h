// SPDX-License-Identifier: MIT OR Apache-2.0
// Small arithmetic on sizes and addresses. Everything is overflow-aware or says what it requires.
#pragma once

#include <cstddef>
#include <cstdint>

namespace terrace {

/// Requires: align is a power of two and value + align does not overflow.
constexpr std::size_t round_up(std::size_t value, std::size_t align) noexcept { return (value + align - 1) & ~(align - 1); }
constexpr std::size_t round_down(std::size_t value, std::size_t align) noexcept { return value & ~(align - 1); }
// Not std::has_single_bit(), which calls a function where the processor's counting instruction may not be assumed.
constexpr bool is_power_of_two(std::size_t value) noexcept { return value != 0 && (value & (value - 1)) == 0; }

inline std::uintptr_t address_of(const void* p) noexcept { return reinterpret_cast<std::uintptr_t>(p); }
inline std::byte* pointer_to(std::uintptr_t address) noexcept {
  return reinterpret_cast<std::byte*>(address);  // NOLINT(performance-no-int-to-ptr): an allocator's business
}

template <class T>
constexpr T min_of(T a, T b) noexcept {
  return b < a ? b : a;
}
template <class T>
constexpr T max_of(T a, T b) noexcept {
  return a < b ? b : a;
}

}  // namespace terrace
