// SPDX-License-Identifier: MIT OR Apache-2.0
// Buffers of machines that are described rather than present: as many as there are cores, last-level caches and nodes, and each
// thread at that of the cpu it runs on. More cpus are described than this machine may have; threads run on those it has.
#include "../topology/machine.h"
#include "fake.h"
#include "lab/heap.h"

namespace terrace::lab {
namespace {

class Described {
 public:
  explicit Described(std::string_view machine) {
    root_.describe(topology::Machine(machine));
    terrace_lab_config c = config_of({1024, 4096, 16384, 65536});
    c.self = this;
    c.source = [](void* self, unsigned node, std::size_t, std::size_t desired, std::size_t* actual) -> void* {
      auto& d = *static_cast<Described*>(self);
      d.node = node;
      if (d.space_.size() - d.used_ < desired) return nullptr;
      *actual = desired;
      d.used_ += desired;
      return d.space_.data() + d.used_ - desired;
    };
    const std::string sys = root_.sys().string();
    const std::size_t bytes = Heap::bytes(c, sys.c_str());
    memory_.reset(static_cast<std::byte*>(std::aligned_alloc(alignof(Buffer), (bytes + 127) / 128 * 128)));
    heap = Heap::make(memory_.get(), c, sys.c_str());
  }
  Heap* heap;
  unsigned node = 99;  // that the source was asked for last

 private:
  topology::FakeRoot root_;
  struct Free {
    void operator()(std::byte* p) const { std::free(p); }
  };
  std::unique_ptr<std::byte, Free> memory_;
  std::vector<char> space_ = std::vector<char>(std::size_t{4} << 20);
  std::size_t used_ = 0;
};

constexpr std::string_view two_sockets =
    "cpus 0-15; core 0,8 1,9 2,10 3,11 4,12 5,13 6,14 7,15; package 0-3,8-11 4-7,12-15; node package; L1d core; L1i core; L2 "
    "core;"
    "L3 0,1,8,9 2,3,10,11 4,5,12,13 6,7,14,15";

TEST(Machines, have_a_buffer_per_core_cache_and_node) {
  const Described d(two_sockets);
  EXPECT_EQ(d.heap->level(TERRACE_LAB_CORE).count, 8U);
  EXPECT_EQ(d.heap->level(TERRACE_LAB_PROCESSOR).count, 4U);
  EXPECT_EQ(d.heap->level(TERRACE_LAB_NODE).count, 2U);
}

TEST(Machines, threads_use_the_buffers_of_their_cpu) {
  cpu_set_t allowed;
  ASSERT_EQ(sched_getaffinity(0, sizeof allowed, &allowed), 0);
  const Described d(two_sockets);
  Thread thread;
  d.heap->attach(thread);
  for (int cpu = 0; cpu < 8; ++cpu) {
    if (!CPU_ISSET(cpu, &allowed)) continue;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
    const auto n = static_cast<unsigned>(cpu);
    EXPECT_EQ(d.heap->index_here(TERRACE_LAB_CORE), n);
    EXPECT_EQ(d.heap->index_here(TERRACE_LAB_PROCESSOR), n / 2);
    EXPECT_EQ(d.heap->index_here(TERRACE_LAB_NODE), n / 4);
    ASSERT_NE(d.heap->allocate_at(thread, TERRACE_LAB_CORE, 64), nullptr);
    EXPECT_NE(d.heap->level(TERRACE_LAB_CORE).buffers[n].top.load(), 0U);
    EXPECT_NE(d.heap->level(TERRACE_LAB_PROCESSOR).buffers[n / 2].top.load(), 0U);
    EXPECT_NE(d.heap->level(TERRACE_LAB_NODE).buffers[n / 4].top.load(), 0U);
  }
  ASSERT_EQ(sched_setaffinity(0, sizeof allowed, &allowed), 0);
  d.heap->detach(thread);
}

TEST(Machines, the_source_is_told_the_node) {
  const OnOneCpu pinned;
  for (const bool first : {true, false}) {
    // Whatever cpu that is, it is on the one node or on the other.
    const std::string_view machine =
        first ? "cpus 0-7; core 0 1 2 3 4 5 6 7; package 0-7; node 0-3 4-7; L1d core; L1i core; L2 core; L3 0-3 4-7"
              : "cpus 0-7; core 0 1 2 3 4 5 6 7; package 0-7; node 4-7 0-3; L1d core; L1i core; L2 core; L3 0-3 4-7";
    const Described d(machine);
    const int cpu = sched_getcpu();
    if (cpu >= 8) GTEST_SKIP() << "cpu " << cpu;
    Request request{.min = 64, .desired = 64};
    const Range got = d.heap->take_range(TERRACE_LAB_LEVELS, request);
    EXPECT_FALSE(got.empty());
    EXPECT_EQ(d.node, (cpu < 4) == first ? 0U : 1U);
  }
}

TEST(Machines, a_neighbour_serves_while_the_own_buffer_is_refilled) {
  const OnOneCpu pinned;
  const Described d(two_sockets);
  Thread thread;
  d.heap->attach(thread);
  const unsigned own = d.heap->index_here(TERRACE_LAB_CORE);
  const Heap::Level& cores = d.heap->level(TERRACE_LAB_CORE);
  ASSERT_NE(d.heap->allocate_at(thread, TERRACE_LAB_CORE, 64), nullptr);
  Buffer& mine = cores.buffers[own];
  Buffer& next = cores.buffers[(own + 1) % cores.count];
  const std::uint64_t top = mine.top.load();
  const std::uint64_t end = mine.end.load();
  // The neighbour gets what is left of the own one, which looks as if somebody refilled it.
  next.end.store(end);
  next.start = top;
  next.top.store(top);
  mine.top.store(refilling);
  EXPECT_EQ(d.heap->allocate_at(thread, TERRACE_LAB_CORE, 64), pointer_to(top));
  EXPECT_EQ(mine.busy.load(), 1U);
  EXPECT_EQ(next.neighbours.load(), 1U);
  mine.start = mine.end.load();
  mine.top.store(end);
  d.heap->detach(thread);
}

}  // namespace
}  // namespace terrace::lab
