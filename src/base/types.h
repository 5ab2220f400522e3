// SPDX-License-Identifier: MIT OR Apache-2.0
// Strong types: a class index, a slot and a cpu number are all small integers and must never be mixed up.
#pragma once

#include <cstddef>
#include <cstdint>

namespace terrace {

/// Index of a size class; 0 means "no class": a large block, or memory that is not ours. Numbers from 256 on are those of
/// object caches.
enum class SizeClass : std::uint16_t {};
/// Index of a set of core-level words: mm_cid or cpu_id, depending on the rung.
enum class Slot : std::int32_t {};
/// A cpu number as the kernel gives it; the only key to locality.
enum class CpuId : std::uint32_t {};

constexpr std::size_t index(SizeClass c) noexcept { return static_cast<std::size_t>(c); }
constexpr std::ptrdiff_t index(Slot s) noexcept { return static_cast<std::ptrdiff_t>(s); }
constexpr std::uint32_t index(CpuId c) noexcept { return static_cast<std::uint32_t>(c); }

inline constexpr std::size_t kib = 1024;
inline constexpr std::size_t mib = 1024 * kib;
inline constexpr std::size_t gib = 1024 * mib;
inline constexpr std::size_t cache_line = 64;

}  // namespace terrace
