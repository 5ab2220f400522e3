// SPDX-License-Identifier: MIT OR Apache-2.0
// Which cpus are hardware threads of one core.
#include "machine.h"

#include <gtest/gtest.h>

namespace terrace::topology {
namespace {

Cores cores_of(std::string_view description) {
  FakeRoot root;
  root.describe(Machine(description));
  Cores cores;
  read_cores(cores, root.read(), root.sys().c_str());
  return cores;
}

TEST(Cores, without_hardware_threads_each_cpu_is_a_core) {
  const Cores c = cores_of("cpus 0-3; L3 all");
  EXPECT_EQ(c.count, 4U);
  EXPECT_EQ(c.cpu_count, 4U);
  for (unsigned cpu = 0; cpu < 4; ++cpu) EXPECT_EQ(c.core_of(CpuId{cpu}), cpu);
}

TEST(Cores, siblings_that_are_numbered_apart) {
  const Cores c = cores_of("cpus 0-7; core 0,4 1,5 2,6 3,7; L3 all");
  EXPECT_EQ(c.count, 4U);
  EXPECT_EQ(c.cpu_count, 8U);
  for (unsigned cpu = 0; cpu < 8; ++cpu) EXPECT_EQ(c.core_of(CpuId{cpu}), cpu % 4);
}

TEST(Cores, cpus_that_are_offline_count_as_of_core_0) {
  const Cores c = cores_of("cpus 0-7; offline 1,2,6; core 0,1 2,3 4,5 6,7; L3 all");
  EXPECT_EQ(c.cpu_count, 5U);
  EXPECT_EQ(c.count, 4U);
  EXPECT_EQ(c.core_of(CpuId{4}), c.core_of(CpuId{5}));
  EXPECT_NE(c.core_of(CpuId{3}), c.core_of(CpuId{4}));
  for (const unsigned cpu : {1U, 2U, 6U}) EXPECT_EQ(c.core_of(CpuId{cpu}), 0U);
}

TEST(Cores, without_sysfs_each_possible_cpu_is_a_core) {
  Topology t;
  t.cpu_count = 3;
  Cores c;
  read_cores(c, t, "/nowhere");
  EXPECT_EQ(c.count, 3U);
  EXPECT_EQ(c.core_of(CpuId{2}), 2U);
}

}  // namespace
}  // namespace terrace::topology
