// SPDX-License-Identifier: MIT OR Apache-2.0
// Blocks on a machine of two nodes with two last-level caches each. The topology and the cpu number come from here (the
// linker's
// --wrap). Run with TERRACE_RUNG=getcpu.
#include "described_machine.h"
#include "heap/heap.h"
#include "terrace/malloc.h"

#include <gtest/gtest.h>
#include <utility>
#include <vector>

namespace {

constexpr unsigned cpus = 8;  // 0 and 1 have cache 0, 2 and 3 cache 1 ...; 0 to 3 are node 0
using machine::here;

}  // namespace

void machine::describe(terrace::topology::Topology& out) noexcept {
  out.cpu_count = cpus;
  out.llc_count = 4;
  out.node_count = 2;
  for (unsigned c = 0; c < cpus; ++c) {
    out.llc[c] = static_cast<std::uint8_t>(c / 2);
    out.node[c] = static_cast<std::uint8_t>(c / 4);
  }
}

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

span::GranuleIndex span_of(const void* p) {
  const span::Window& w = heap.spans().window();
  return w.record(w.index_of(p)).first;
}
unsigned node_of(const void* p) { return heap.spans().window().record(span_of(p)).node; }

// More than what any level holds.
TEST_F(NodesTest, blocks_are_cut_from_slabs_of_the_own_node) {
  const auto ours = take(cpu_of_node_0, 5000);
  const auto theirs = take(cpu_of_node_1, 5000);
  for (const void* p : ours) ASSERT_EQ(node_of(p), 0U);
  for (const void* p : theirs) ASSERT_EQ(node_of(p), 1U);
  give(cpu_of_node_0, ours);
  give(cpu_of_node_1, theirs);
  terrace_malloc_trim(0);
  // What is half free on one node is not cut on the other.
  auto mixed = take(cpu_of_node_1, 5000);
  std::vector<void*> half;
  for (std::size_t i = 0; i < mixed.size(); i += 2) half.push_back(std::exchange(mixed[i], nullptr));
  give(cpu_of_node_1, half);
  terrace_malloc_trim(0);
  const auto more = take(cpu_of_node_0, 2000);
  for (const void* p : more) ASSERT_EQ(node_of(p), 0U);
  EXPECT_STREQ(heap.check_invariants(), nullptr);
  give(cpu_of_node_0, more);
  give(cpu_of_node_0, mixed);
}

TEST_F(NodesTest, a_large_block_comes_from_a_span_of_the_node) {
  constexpr std::size_t large = 16 * mib - 8 * kib;  // with room for any line that it begins at
  here = cpu_of_node_1;
  void* const theirs = terrace_malloc(large);
  const span::GranuleIndex far = span_of(theirs);
  EXPECT_EQ(node_of(theirs), 1U);
  terrace_free(theirs);
  here = cpu_of_node_0;
  void* const ours = terrace_malloc(large);
  EXPECT_EQ(node_of(ours), 0U);
  EXPECT_NE(span_of(ours), far) << "its pages lie on the other node";
  here = cpu_of_node_1;
  void* const again = terrace_malloc(large);
  EXPECT_EQ(span_of(again), far);
  terrace_free(again);
  terrace_free(ours);
}

}  // namespace
}  // namespace terrace::heap
