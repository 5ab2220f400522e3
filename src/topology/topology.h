// SPDX-License-Identifier: MIT OR Apache-2.0
// Which cpus share a last-level cache. Read once from sysfs, immutable afterwards; the root of sysfs is a parameter, so that
// any machine can be tested on any other.
//
// Locality comes from the cpu number only. The dense slot ids of the kernel (mm_cid) say nothing about where a thread runs.
#pragma once

#include "base/types.h"

#include <array>

namespace terrace::topology {

enum class LlcId : std::uint8_t {};
constexpr std::uint32_t index(LlcId l) noexcept { return static_cast<std::uint32_t>(l); }

/// Cpus whose place is known: Linux's own bound for distributions. CPU n beyond uses the LLC of n mod 8192.
inline constexpr unsigned max_cpus = 8192;
/// What a damaged list of cpus may claim at most; kernels have room for 8,192.
inline constexpr unsigned most_slots = 1U << 16;
inline constexpr unsigned max_llcs = 64;  // beyond: folded by modulo

struct Topology {
  unsigned cpu_count = 1;  // highest possible cpu number + 1: the number of slots that may be needed
  unsigned llc_count = 1;
  unsigned node_count = 1;
  std::array<std::uint8_t, max_cpus> llc{};   // by cpu; touched only where there is more than one LLC
  std::array<std::uint8_t, max_cpus> node{};  // by cpu; as above

  LlcId llc_of(CpuId cpu) const noexcept {
    return LlcId{llc_count == 1 ? std::uint8_t{0} : llc[terrace::index(cpu) % max_cpus]};
  }
  unsigned node_of(CpuId cpu) const noexcept { return node_count == 1 ? 0 : node[terrace::index(cpu) % max_cpus]; }
};

/// Which cpus are hardware threads of one core. Not part of Topology: who needs it reads a file per cpu.
struct Cores {
  unsigned count = 1;                          // cores that are online
  unsigned cpu_count = 1;                      // cpus that are online
  std::array<std::uint16_t, max_cpus> core{};  // by cpu; those that are offline count as of core 0
  unsigned core_of(CpuId cpu) const noexcept { return core[terrace::index(cpu) % max_cpus]; }
};
void read_cores(Cores& out, const Topology& topology, const char* sysfs_root = "/sys") noexcept;

/// Always yields something usable: what can not be read counts as one LLC and one node.
void read(Topology& out, const char* sysfs_root = "/sys") noexcept;

}  // namespace terrace::topology
