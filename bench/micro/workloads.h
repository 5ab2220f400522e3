// SPDX-License-Identifier: MIT OR Apache-2.0
// The workloads of the literature on allocators.
#pragma once

#include <span>
#include <string_view>

namespace bench {

struct Workload {
  std::string_view name;
  int (*main)(int argc, char** argv);
};

extern const std::span<const Workload> tables, batches, exchange, strings;

}  // namespace bench
