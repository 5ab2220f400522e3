// SPDX-License-Identifier: MIT OR Apache-2.0
// Blocks on a machine of two nodes with two last-level caches each. The topology and the cpu number come from here (the
// linker's
// --wrap). Run with TERRACE_RUNG=getcpu.
#include "heap/heap.h"
#include "terrace/malloc.h"

#include <gtest/gtest.h>
#include <vector>

namespace {

constexpr unsigned cpus = 8;  // 0 and 1 have cache 0, 2 and 3 cache 1 ...; 0 to 3 are node 0
constinit int here = 0;

}  // namespace

namespace terrace::os {
int wrap_current_cpu() noexcept asm("__wrap__ZN7terrace2os11current_cpuEv");
int wrap_current_cpu() noexcept { return here; }
}  // namespace terrace::os

namespace terrace::topology {
void wrap_read(Topology& out, const char* root) noexcept asm("__wrap__ZN7terrace8topology4readERNS0_8TopologyEPKc");
void wrap_read(Topology& out, const char* /*root*/) noexcept {
  out.cpu_count = cpus;
  out.llc_count = 4;
  out.node_count = 2;
  for (unsigned c = 0; c < cpus; ++c) {
    out.llc[c] = static_cast<std::uint8_t>(c / 2);
    out.node[c] = static_cast<std::uint8_t>(c / 4);
  }
}
}  // namespace terrace::topology

namespace terrace::heap {
namespace {

constexpr std::size_t size = 1024;
constexpr int cpu_of_node_0 = 0, other_cache_of_node_0 = 2, cpu_of_node_1 = 4;

class NodesTest : public testing::Test {
 protected:
  void SetUp() override {
    terrace_malloc_trim(0);
    if (heap.core().rung() != percpu::Rung::getcpu) GTEST_SKIP() << "not as it is to be run";
    here = cpu_of_node_0;
  }
  void TearDown() override { EXPECT_STREQ(heap.check_invariants(), nullptr); }

  static std::vector<void*> take(int cpu, unsigned n) {
    here = cpu;
    std::vector<void*> blocks(n);
    for (void*& p : blocks) p = terrace_malloc(size);
    return blocks;
  }
  static void give(int cpu, const std::vector<void*>& blocks) {
    here = cpu;
    for (void* p : blocks) terrace_free(p);
  }
  static std::uint64_t foreign() { return heap.levels().transfers(class_for(size)).foreign.read(); }
  static std::uint64_t in(DepotLevel& level) { return level.budget().granted(); }
};

TEST_F(NodesTest, both_levels_exist) {
  EXPECT_EQ(heap.levels().processors().depots().depots(), 4U);
  EXPECT_EQ(heap.levels().nodes().depots().depots(), 2U);
  EXPECT_EQ(heap.core().slot_count(), cpus);
}

TEST_F(NodesTest, what_is_too_much_for_a_processor_lies_in_its_nodes_depot) {
  give(cpu_of_node_0, take(cpu_of_node_0, 6000));
  EXPECT_GT(in(heap.levels().processors()), 0U);
  EXPECT_GT(in(heap.levels().nodes()), 0U);
}

// The other processor of the node gets what the first one's depot has, then what the node's has; the other node gets the rest
// of the node's, and nothing of a processor's.
TEST_F(NodesTest, a_node_looks_at_home_first_and_never_into_a_processors_depot_of_another) {
  give(cpu_of_node_0, take(cpu_of_node_0, 6000));
  const std::uint64_t of_processors = in(heap.levels().processors()), of_nodes = in(heap.levels().nodes());
  const std::uint64_t before = foreign();
  auto theirs = take(cpu_of_node_1, static_cast<unsigned>(of_nodes / size + 1000));
  EXPECT_EQ(in(heap.levels().processors()), of_processors);
  EXPECT_EQ(in(heap.levels().nodes()), 0U);
  EXPECT_GE(foreign() - before, of_nodes / size);
  auto ours = take(other_cache_of_node_0, static_cast<unsigned>(of_processors / size));
  EXPECT_LT(in(heap.levels().processors()), of_processors / 4);
  give(cpu_of_node_1, theirs);
  give(other_cache_of_node_0, ours);
}

}  // namespace
}  // namespace terrace::heap
