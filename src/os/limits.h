// SPDX-License-Identifier: MIT OR Apache-2.0
// How much memory the process may have, and how much processor time: by its control groups, its own limits, the machine.
#pragma once

#include <cstdint>

namespace terrace::os {

struct Limits {
  static constexpr std::uint64_t none = ~std::uint64_t{0};

  std::uint64_t of_groups = none;   // bytes, the smallest: memory.max, memory.high; version 1: memory.limit_in_bytes
  std::uint64_t of_process = none;  // bytes: RLIMIT_AS, RLIMIT_DATA, what the machine has
  unsigned processors = ~0U;        // as many at a time, on average: cpu.max; version 1: cpu.cfs_quota_us

  std::uint64_t memory() const noexcept { return of_groups < of_process ? of_groups : of_process; }
};

enum class Groups : std::uint8_t {
  mounted,  // memory of the one whose files lie at the top, which is a container's own: little enough for each process' start
  all,      // memory and processors, from the process' own up to the top
};

/// Into `known`; what can not be read, or makes no sense, stays as it is known. Opens files: see may_open_files(). `root`
/// is put before all paths, so that any system can be tested on any other.
void read_limits(Limits& known, Groups groups, const char* root = "") noexcept;

}  // namespace terrace::os
