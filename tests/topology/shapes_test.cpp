// SPDX-License-Identifier: MIT OR Apache-2.0
// Machines that exist, and what must be made of them.
#include "machine.h"

#include <gtest/gtest.h>

namespace terrace::topology {
namespace {

TEST(Shapes, one_socket_with_one_cache_is_one_llc) {
  const Topology t = topology_of("cpus 0-3; L1d each; L1i each; L2 each; L3 all; node all");
  EXPECT_EQ(t.cpu_count, 4U);
  EXPECT_EQ(llcs(t), "0-3");
  EXPECT_EQ(nodes(t), "0-3");
}

TEST(Shapes, two_sockets_whose_siblings_are_numbered_apart) {
  const Topology t = topology_of(
      "cpus 0-15; core 0,8 1,9 2,10 3,11 4,12 5,13 6,14 7,15; package 0-3,8-11 4-7,12-15; node package;"
      "L1d core; L1i core; L2 core; L3 package");
  EXPECT_EQ(t.cpu_count, 16U);
  EXPECT_EQ(llcs(t), "0-3,8-11 4-7,12-15");
  EXPECT_EQ(nodes(t), "0-3,8-11 4-7,12-15");
}

TEST(Shapes, two_sockets_that_number_their_cpus_in_turn) {
  const Topology t = topology_of("cpus 0-7; package 0,2,4,6 1,3,5,7; L1d each; L2 each; L3 package");
  EXPECT_EQ(llcs(t), "0,2,4,6 1,3,5,7");
}

TEST(Shapes, core_complexes_of_one_socket_are_llcs_in_one_node) {
  const Topology t = topology_of("cpus 0-15; L1d each; L1i each; L2 each; L3 0-3 4-7 8-11 12-15; node all");
  EXPECT_EQ(llcs(t), "0-3 4-7 8-11 12-15");
  EXPECT_EQ(t.node_count, 1U);
}

TEST(Shapes, several_llcs_in_each_of_two_nodes) {
  const Topology t = topology_of("cpus 0-15; package 0-7 8-15; node package; L1d each; L2 each; L3 0-3 4-7 8-11 12-15");
  EXPECT_EQ(llcs(t), "0-3 4-7 8-11 12-15");
  EXPECT_EQ(nodes(t), "0-7 8-15");
}

TEST(Shapes, a_node_without_cpus_is_a_node) {
  FakeRoot root;
  root.describe(Machine("cpus 0-3; L1d each; L3 0,1 2,3; node 0,1 2,3"));
  root.put("devices/system/node/node2/cpulist", "\n");
  root.put("devices/system/node/online", "0-2\n");
  const Topology t = root.read();
  EXPECT_EQ(t.node_count, 3U);
  EXPECT_EQ(t.node_of(CpuId{1}), 0U);
  EXPECT_EQ(t.node_of(CpuId{2}), 1U);
}

TEST(Shapes, without_a_level_3_the_level_2_of_a_cluster_is_the_last) {
  EXPECT_EQ(llcs(topology_of("cpus 0-7; package all; L1d each; L1i each; L2 0-3 4-7")), "0-3 4-7");
  EXPECT_EQ(llcs(topology_of("cpus 0-3; L1d each; L1i each; L2 all")), "0-3");
}

TEST(Shapes, a_level_4_beats_a_level_3) {
  EXPECT_EQ(llcs(topology_of("cpus 0-7; L1d each; L1i each; L2 each; L3 0-3 4-7; L4 all")), "0-7");
  EXPECT_EQ(llcs(topology_of("cpus 0-7; L1d each; L1i each; L2 each; L3 0,1 2,3 4,5 6,7; L4 0-3 4-7")), "0-3 4-7");
}

TEST(Shapes, the_order_of_the_indices_says_nothing) {
  EXPECT_EQ(llcs(topology_of("cpus 0-7; L3 0-3 4-7; L2 each; L1i each; L1d each")), "0-3 4-7");
  EXPECT_EQ(llcs(topology_of("cpus 0-7; L3 all; L2 each; L1i each; L1d each")), "0-7");
  EXPECT_EQ(llcs(topology_of("cpus 0-7; L1 each; L2 each; L3 0-3 4-7")), "0-3 4-7");
}

TEST(Shapes, a_cache_of_instructions_is_not_counted) {
  EXPECT_EQ(llcs(topology_of("cpus 0-7; L1d each; L2 0-3 4-7; L3i all")), "0-3 4-7");
  EXPECT_EQ(llcs(topology_of("cpus 0-3; package 0,1 2,3; L1d each; L2i all")), "0-1 2-3");
}

TEST(Shapes, where_only_level_1_is_described_the_package_counts) {
  EXPECT_EQ(llcs(topology_of("cpus 0-7; package 0-3 4-7; L1d each; L1i each")), "0-3 4-7");
  EXPECT_EQ(llcs(topology_of("cpus 0-7; L1d each; L1i each")), "0-7");
}

TEST(Shapes, small_cores_that_reach_the_level_3_are_in_its_llc) {
  const Topology t = topology_of("cpus 0-11; core 0,1 2,3; L1d core; L1i core; L2 0,1 2,3 4-7 8-11; L3 all");
  EXPECT_EQ(llcs(t), "0-11");
}

TEST(Shapes, small_cores_without_a_level_3_are_an_llc_of_their_own) {
  EXPECT_EQ(llcs(topology_of("cpus 0-9; L1d each; L1i each; L2 0,1 2,3 4-7 8,9; L3 0-7")), "0-7 8-9");
  // cpu 0 is one of them: its index 3 is not there.
  EXPECT_EQ(llcs(topology_of("cpus 0-9; L1d each; L1i each; L2 0,1 2-5 6-9; L3 2-9")), "0-1 2-9");
}

TEST(Shapes, unequal_clusters) {
  EXPECT_EQ(llcs(topology_of("cpus 0-7; L1d each; L1i each; L2 0-3 4-5 6-7; L3 0-5 6-7")), "0-5 6-7");
  EXPECT_EQ(llcs(topology_of("cpus 0-5; L1d each; L1i each; L2 0-3 4-5")), "0-3 4-5");
}

TEST(Numbers, gaps_belong_to_llc_0) {
  const Topology t = topology_of("cpus 0-3,8-11; L1d each; L2 each; L3 0-3 8-11");
  EXPECT_EQ(t.cpu_count, 12U);
  EXPECT_EQ(llcs(t), "0-7 8-11");
  EXPECT_EQ(llcs(topology_of("cpus 0-3,8-11; L1d each; L2 each; L3 all")), "0-11");
}

TEST(Numbers, offline_cpus_belong_to_llc_0) {
  EXPECT_EQ(llcs(topology_of("cpus 0-7; offline 2,5; L1d each; L1i each; L2 each; L3 0-3 4-7")), "0-3,5 4,6-7");
  EXPECT_EQ(llcs(topology_of("cpus 0-7; offline 4-7; L1d each; L1i each; L2 each; L3 0-3 4-7")), "0-7");
  EXPECT_EQ(llcs(topology_of("cpus 0-7; offline 1,3,5,7; L1d each; L1i each; L2 each; L3 all")), "0-7");
}

TEST(Numbers, offline_cpus_in_front_do_not_take_a_number) {
  const Topology t = topology_of("cpus 0-7; offline 0,1; L1d each; L1i each; L2 each; L3 0-3 4-7");
  EXPECT_EQ(llcs(t), "0-3 4-7");
  EXPECT_EQ(llcs(topology_of("cpus 0-7; offline 0-3; L1d each; L1i each; L2 each; L3 0-3 4-7")), "0-7");
}

TEST(Numbers, a_thousand_cpus) {
  const Topology t = topology_of("cpus 0-1151; offline 8-1015; L1d each; L2 each; L3 0-1019 1020-1151");
  EXPECT_EQ(t.cpu_count, 1152U);
  EXPECT_EQ(llcs(t), "0-1019 1020-1151");
  EXPECT_EQ(index(t.llc_of(CpuId{1023})), 1U);
}

TEST(Numbers, long_lists_are_read_to_their_end) {
  Cpus even, odd;
  for (unsigned cpu = 0; cpu < 1100; ++cpu) (cpu % 2 == 0 ? even : odd).insert(cpu);
  FakeRoot root;
  root.put(FakeRoot::cpu_file("possible"), "0-1099\n");
  for (const unsigned cpu : {0U, 1U}) {  // those that are asked, if the others are found in their lists
    const std::string at = FakeRoot::cpu_file("cpu" + std::to_string(cpu) + "/cache/index0/");
    root.put(at + "level", "3\n");
    root.put(at + "type", "Unified\n");
    root.put(at + "shared_cpu_list", list_of(cpu == 0 ? even : odd) + "\n");
  }
  const Topology t = root.read();
  ASSERT_EQ(t.llc_count, 2U);
  for (unsigned cpu = 0; cpu < 1100; ++cpu) ASSERT_EQ(index(t.llc_of(CpuId{cpu})), cpu % 2) << cpu;
}

TEST(Numbers, cpus_beyond_the_bound_are_those_modulo_it) {
  const Topology t = topology_of("cpus 0-16383; offline 8-16375; L1d each; L2 each; L3 0-3,16376-16379 4-7,16380-16383");
  EXPECT_EQ(t.cpu_count, 16384U);  // each has a slot: the fast path does not ask whether a cpu has one
  EXPECT_EQ(t.llc_count, 2U);
  EXPECT_EQ(index(t.llc_of(CpuId{5})), 1U);
  for (unsigned cpu = 0; cpu < max_cpus; ++cpu) ASSERT_EQ(t.llc_of(CpuId{cpu}), t.llc_of(CpuId{cpu + max_cpus})) << cpu;
  EXPECT_EQ(broken_invariant(t), "");
}

TEST(Numbers, more_llcs_than_the_bound_are_folded) {
  const Topology t = topology_of("cpus 0-199; L1d each; L2 each; L3 each");
  EXPECT_EQ(t.llc_count, max_llcs);
  for (unsigned cpu = 0; cpu < 200; ++cpu) ASSERT_EQ(index(t.llc_of(CpuId{cpu})), cpu % max_llcs);
  EXPECT_EQ(broken_invariant(t), "");
}

TEST(Numbers, one_cpu_needs_no_more_files) {
  FakeRoot root;
  root.put(FakeRoot::cpu_file("possible"), "0\n");
  const Topology t = root.read();
  EXPECT_EQ(t.cpu_count, 1U);
  EXPECT_EQ(llcs(t), "0");
}

}  // namespace
}  // namespace terrace::topology
