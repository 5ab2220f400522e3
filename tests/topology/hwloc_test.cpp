// SPDX-License-Identifier: MIT OR Apache-2.0
// The same machines, and this one, as hwloc sees them.
#include "machine.h"

#include <algorithm>
#include <cstdlib>
#include <gtest/gtest.h>
#include <hwloc.h>
#include <memory>
#include <optional>
#include <type_traits>

namespace terrace::topology {
namespace {

using Handle = std::unique_ptr<std::remove_pointer_t<hwloc_topology_t>, decltype(&hwloc_topology_destroy)>;

// Reads the files of Linux below this root and asks nobody else (such as the processor itself).
std::optional<Handle> load(const char* fsroot) {
  setenv("HWLOC_COMPONENTS", "linux,stop", 1);
  fsroot != nullptr ? setenv("HWLOC_FSROOT", fsroot, 1) : unsetenv("HWLOC_FSROOT");
  hwloc_topology_t raw = nullptr;
  if (hwloc_topology_init(&raw) != 0) return std::nullopt;
  Handle topology(raw, hwloc_topology_destroy);
  hwloc_topology_set_all_types_filter(raw, HWLOC_TYPE_FILTER_KEEP_ALL);
  hwloc_topology_set_flags(raw, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED);
  if (hwloc_topology_load(raw) != 0) return std::nullopt;
  return topology;
}

// The highest cache above the cpu that holds data, of level 2 or more; else its package.
unsigned last_cache_above(hwloc_obj_t pu) {
  hwloc_obj_t best = nullptr, package = nullptr;
  for (hwloc_obj_t o = pu->parent; o != nullptr; o = o->parent) {
    if (hwloc_obj_type_is_dcache(o->type) && o->attr->cache.depth >= 2) best = o;
    if (o->type == HWLOC_OBJ_PACKAGE) package = o;
  }
  const hwloc_obj_t found = best != nullptr ? best : package;
  return found != nullptr ? static_cast<unsigned>(hwloc_bitmap_first(found->cpuset)) : 0;
}

struct Opinion {
  Cpus cpus;
  std::map<unsigned, unsigned> llc;
};

Opinion opinion_of(hwloc_topology_t topology) {
  Opinion result;
  for (hwloc_obj_t pu = nullptr; (pu = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_PU, pu)) != nullptr;) {
    result.cpus.insert(pu->os_index);
    result.llc[pu->os_index] = last_cache_above(pu);
  }
  return result;
}

void expect_agreement(const Topology& ours, const Opinion& theirs) {
  EXPECT_EQ(partition(theirs.cpus, [&](unsigned cpu) { return index(ours.llc_of(CpuId{cpu})); }),
            partition(theirs.cpus, [&](unsigned cpu) { return theirs.llc.at(cpu); }));
}

TEST(Hwloc, agrees_about_this_machine) {
  const std::optional<Handle> handle = load(nullptr);
  if (!handle) GTEST_SKIP() << "hwloc can not read this machine";
  const Opinion theirs = opinion_of(handle->get());
  Topology ours;
  read(ours);
  std::set<unsigned> groups;
  for (const auto& [cpu, group] : theirs.llc) groups.insert(group);
  EXPECT_GE(ours.cpu_count, *theirs.cpus.rbegin() + 1);
  EXPECT_EQ(ours.llc_count, std::min<std::size_t>(groups.size(), max_llcs));
  if (groups.size() <= max_llcs) expect_agreement(ours, theirs);
}

TEST(Hwloc, agrees_about_described_machines) {
  constexpr const char* described[] = {
      "cpus 0-3; L1d each; L1i each; L2 each; L3 all",
      "cpus 0-15; core 0,8 1,9 2,10 3,11 4,12 5,13 6,14 7,15; package 0-3,8-11 4-7,12-15; L1d core; L1i core; L2 core; L3 "
      "package",
      "cpus 0-7; package 0,2,4,6 1,3,5,7; L1d each; L1i each; L2 each; L3 package",
      "cpus 0-15; L1d each; L1i each; L2 each; L3 0-3 4-7 8-11 12-15",
      "cpus 0-15; package 0-7 8-15; L1d each; L1i each; L2 each; L3 0-3 4-7 8-11 12-15",
      "cpus 0-7; L1d each; L1i each; L2 0-3 4-7",
      "cpus 0-7; package 0-3 4-7; L1d each; L1i each",
      "cpus 0-7; L1d each; L1i each; L2 each; L3 0-3 4-7; L4 all",
      "cpus 0-7; L1d each; L1i each; L2 each; L3 0,1 2,3 4,5 6,7; L4 0-3 4-7",
      "cpus 0-11; core 0,1 2,3 4 5 6 7 8 9 10 11; L1d core; L1i core; L2 0,1 2,3 4-7 8-11; L3 all",
      "cpus 0-9; L1d each; L1i each; L2 0,1 2,3 4-7 8,9; L3 0-7",
      "cpus 0-9; L1d each; L1i each; L2 0,1 2-5 6-9; L3 2-9",
      "cpus 0-7; offline 2,5; L1d each; L1i each; L2 each; L3 0-3 4-7",
      "cpus 0-3,8-11; package 0-3 8-11; L1d each; L1i each; L2 each; L3 package",
      "cpus 0-1151; offline 4-1019,1028-1151; L1d each; L1i each; L2 each; L3 0-3,1024-1027 1020-1023",
  };
  for (const char* const description : described) {
    SCOPED_TRACE(description);
    const Machine machine(description);
    FakeRoot root;
    root.describe(machine, Files::all);
    const std::optional<Handle> handle = load(root.directory().c_str());
    ASSERT_TRUE(handle);
    const Opinion theirs = opinion_of(handle->get());
    ASSERT_EQ(list_of(theirs.cpus), list_of(machine.online));
    expect_agreement(root.read(), theirs);
  }
}

}  // namespace
}  // namespace terrace::topology
