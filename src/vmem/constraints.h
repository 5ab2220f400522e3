// SPDX-License-Identifier: MIT OR Apache-2.0
// What vmem_xalloc() asks for, and where in a free segment that is to be had.
#pragma once

#include "base/bits.h"

#include <cstddef>
#include <cstdint>

namespace terrace::vmem {

struct Constraints {
  static constexpr std::uintptr_t nowhere = 0;  // address 0 belongs to no span

  std::size_t asked;          // bytes
  std::size_t size;           // the same, in whole quanta
  std::size_t align;          // a power of two, at least the quantum
  std::size_t phase = 0;      // below align: the address modulo align
  std::size_t nocross = 0;    // 0, or a power of two: [address, address + asked) has no multiple of it inside
  std::uintptr_t lowest = 0;  // of the address
  std::uintptr_t limit = 0;   // of address + asked; 0: none

  /// Whether any free segment of some size would do, and the source may be asked.
  bool anywhere() const noexcept { return nocross == 0 && lowest == 0 && limit == 0; }
  /// The bytes of a free segment, of whole quanta, that surely has a place if it lies anywhere; 0: more than there can be.
  std::size_t surely_enough(std::size_t quantum) const noexcept {
    std::size_t bytes = 0;
    return __builtin_add_overflow(size, align - quantum, &bytes) ? 0 : bytes;
  }
  /// The lowest address in [start, start + bytes) that meets all constraints, or `nowhere`.
  std::uintptr_t place(std::uintptr_t start, std::size_t bytes) const noexcept {
    const std::uintptr_t from = max_of(start, lowest), end = start + bytes;
    std::uintptr_t address = from + ((phase - from) & (align - 1));
    if (address < from) return nowhere;
    if (nocross != 0 && ((address ^ (address + asked - 1)) & ~(nocross - 1)) != 0) {
      const std::uintptr_t boundary = round_down(address, nocross) + nocross;  // a multiple of align, too
      if (boundary < address || __builtin_add_overflow(boundary, phase, &address)) return nowhere;
    }
    if (address >= end || end - address < size) return nowhere;
    return limit != 0 && (address >= limit || limit - address < asked) ? nowhere : address;
  }

  /// Whether they can be met at all, somewhere: what the program gave as arguments.
  bool are_valid(std::size_t quantum) const noexcept {
    if (!is_power_of_two(align) || align < quantum || phase >= align || phase % quantum != 0) return false;
    if (limit != 0 && lowest >= limit) return false;
    return nocross == 0 || (is_power_of_two(nocross) && nocross >= align && asked <= nocross && phase <= nocross - asked);
  }
};

}  // namespace terrace::vmem
