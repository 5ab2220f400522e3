// SPDX-License-Identifier: MIT OR Apache-2.0
// bench_micro NAME KEY=VALUE...: runs one workload; common/program.h says what all understand and print.
#include "workloads.h"

#include <cstdio>

int main(int argc, char** argv) {
  const auto groups = {bench::tables, bench::batches, bench::exchange, bench::strings};
  const std::string_view asked = argc > 1 ? argv[1] : "";
  for (const auto& group : groups) {
    for (const auto& [name, run] : group) {
      if (name == asked) return run(argc - 1, argv + 1);
    }
  }
  std::fprintf(stderr, "usage: bench_micro NAME KEY=VALUE..., NAME one of:");
  for (const auto& group : groups) {
    for (const auto& [name, run] : group) std::fprintf(stderr, " %s", name.data());
  }
  std::fprintf(stderr, "\n");
  return 2;
}
