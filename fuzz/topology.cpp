// SPDX-License-Identifier: MIT OR Apache-2.0
// The reader of sysfs: each line of input becomes one file of a machine of four CPUs, in a fixed order; the files of missing
// lines do not exist. Whatever they say, what was read must be usable.
#include "../tests/topology/machine.h"
#include "bytes.h"

namespace {

using terrace::CpuId;
using terrace::topology::FakeRoot;

std::vector<std::string> files() {
  std::vector<std::string> all = {FakeRoot::cpu_file("possible"), FakeRoot::cpu_file("online")};
  for (const std::string cpu : {"cpu0/", "cpu1/", "cpu2/", "cpu3/"}) {
    for (const char* const file :
         {"cache/index3/shared_cpu_list", "cache/index3/level", "cache/index3/type", "cache/index0/shared_cpu_list",
          "cache/index0/level", "cache/index0/type", "topology/package_cpus_list", "topology/core_cpus_list"}) {
      all.push_back(FakeRoot::cpu_file(cpu + file));
    }
  }
  for (const char* const file : {"online", "node0/cpulist", "node1/cpulist"}) {
    all.push_back(std::string("devices/system/node/") + file);
  }
  return all;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static FakeRoot root;
  static const std::vector<std::string> all = files();
  static terrace::topology::Cores cores;
  fuzz::Bytes input(data, size);
  for (const std::string& file : all) {
    if (input.empty()) {
      root.remove(file);
    } else {
      root.put(file, input.line());
    }
  }
  const terrace::topology::Topology t = root.read();
  const std::string broken = broken_invariant(t);
  if (!broken.empty()) std::fprintf(stderr, "%s\n", broken.c_str());
  FUZZ_CHECK(broken.empty());
  read_cores(cores, t, root.sys().c_str());
  FUZZ_CHECK(cores.count >= 1 && cores.cpu_count >= cores.count);
  for (std::uint32_t cpu = 0; cpu < terrace::topology::max_cpus; ++cpu) FUZZ_CHECK(cores.core_of(CpuId{cpu}) < cores.count);
  return 0;
}
