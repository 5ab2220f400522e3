// SPDX-License-Identifier: MIT OR Apache-2.0
// Tails: never shorter than the shortest filler; ranges of two regions, which are not joined; objects that are aligned, with
// fillers around them; sizes that are cut down in a small space.
#include "fake.h"
#include "terrace/lab_emit.h"

#include <algorithm>
#include <random>

namespace terrace::lab {
namespace {

constexpr int core = TERRACE_LAB_CORE;
constexpr std::size_t min_fill = 32;

class Fillers : public testing::TestWithParam<int> {
 protected:
  terrace_lab_config config(std::array<std::size_t, TERRACE_LAB_LEVELS> sizes) const {
    terrace_lab_config c = config_of(sizes, GetParam());
    c.alignment = 8;
    c.min_fill = min_fill;
    return c;
  }
  OnOneCpu cpu_;
};
INSTANTIATE_TEST_SUITE_P(Core, Fillers, testing::Values(TERRACE_LAB_CAS, TERRACE_LAB_RESTARTABLE),
                         [](const auto& info) { return info.param == TERRACE_LAB_CAS ? "cas" : "restartable"; });

TEST_P(Fillers, are_never_shorter_than_the_least) {
  for (const std::size_t gap : {0, 64}) {
    Fake fake(config({1024, 4096, 16384, 0}));
    fake.gap = gap;
    Attached t(fake), other(fake);
    std::mt19937 rng(7);
    for (int i = 0; i < 20000; ++i) {
      const std::size_t bytes = 8 * (1 + rng() % (rng() % 16 == 0 ? 300 : 12));
      const std::size_t at = rng() % 4 == 0 ? t.allocate_at(core, bytes)
                             : i % 2 == 0   ? t.allocate(bytes)
                                            : other.allocate(bytes);
      if (at == Attached::none) fake.collect();
    }
    fake.collect();
    EXPECT_GT(fake.counters().collections, 2U);
  }
}

TEST_P(Fillers, a_buffer_keeps_back_what_the_shortest_needs) {
  Fake fake(config({1024, 0, 0, 0}));
  fake.gap = 64;
  Attached t(fake);
  t.allocate(984);
  EXPECT_EQ(t.tail(), 1024U - 984 - min_fill);
  EXPECT_EQ(t.allocate(8), 984U);
  EXPECT_EQ(t.tail(), 0U);
  EXPECT_EQ(t.allocate(8), 1024U + 64);
  EXPECT_EQ(fake.filled, (ListOfBytes{{992, 1024}}));
}

TEST_P(Fillers, what_is_kept_back_is_used_when_a_neighbour_is_joined) {
  Fake fake(config({1024, 0, 0, 0}));
  Attached t(fake);
  t.allocate(992);
  EXPECT_EQ(t.allocate(512), 992U);
  EXPECT_TRUE(fake.filled.empty());
}

TEST_P(Fillers, a_request_as_large_as_a_buffer_gets_a_larger_one) {
  Fake fake(config({0, 4096, 0, 0}));
  Attached t(fake);
  EXPECT_EQ(t.allocate_at(core, 512), 0U);
  std::size_t actual = 0;
  ASSERT_NE(terrace_lab_take(fake.heap, core, 4096, 4096, &actual), nullptr);
  EXPECT_EQ(actual, 4096U);
  ASSERT_EQ(terrace_lab_retire_all(fake.heap), 0);
  EXPECT_EQ(sum_of(fake.filled) + 4096 + 512, fake.used);
}

TEST_P(Fillers, a_visitor_sees_tails_with_what_is_kept_back) {
  Fake fake(config({1024, 4096, 0, 0}));
  Attached t(fake);
  t.allocate(64);
  ListOfBytes tails = fake.tails();
  std::sort(tails.begin(), tails.end());
  EXPECT_EQ(tails, (ListOfBytes{{64, 1024}, {1024, 4096}}));
}

// ---- regions

TEST_P(Fillers, ranges_that_meet_at_a_boundary_are_not_joined) {
  terrace_lab_config c = config({0, 4096, 0, 0});
  c.boundary = 4096;  // the fake's space begins at a page
  Fake fake(c);
  Attached t(fake);
  t.allocate_many(1, 4000);
  EXPECT_EQ(t.allocate(256), 4096U);
  EXPECT_EQ(fake.filled, (ListOfBytes{{4000, 4096}}));
}

TEST_P(Fillers, those_that_meet_elsewhere_are) {
  terrace_lab_config c = config({0, 4096, 0, 0});
  c.boundary = std::size_t{1} << 40;
  Fake fake(c);
  Attached t(fake);
  t.allocate_many(1, 4000);
  EXPECT_EQ(t.allocate(256), 4000U);
  EXPECT_TRUE(fake.filled.empty());
}

TEST_P(Fillers, a_threads_buffer_does_not_lie_across_a_boundary) {
  terrace_lab_config c = config({4096, 0, 0, 0});
  c.boundary = 4096;
  Fake fake(c);
  Attached t(fake);
  t.allocate_many(1, 4056);
  EXPECT_EQ(t.allocate(16), 4096U);
  EXPECT_EQ(fake.filled, (ListOfBytes{{4056, 4096}}));
}

// ---- alignment

TEST_P(Fillers, lie_around_aligned_objects) {
  for (const std::size_t alignment : {16, 64, 4096}) {
    terrace_lab_config c = config({8192, 65536, 0, 0});
    Fake fake(c);
    Attached t(fake);
    ListOfBytes objects;
    for (std::size_t i = 0; i < 200; ++i) {
      t.allocate(8 * (1 + i % 9));
      const std::size_t bytes = 8 * (1 + i % 40);
      void* const p = terrace_lab_allocate_aligned(&t.lab, bytes, alignment);
      if (p == nullptr) break;
      const std::size_t at = fake.offset(p);
      EXPECT_EQ(at % alignment, 0U);
      objects.push_back({at, at + bytes});
    }
    const std::uint64_t padding = fake.counters().padding_bytes;
    EXPECT_EQ(padding, sum_of(fake.filled) - fake.counts(0).wasted_bytes - fake.counts(core).wasted_bytes);
    EXPECT_GT(padding, 0U);
    ASSERT_EQ(terrace_lab_retire_all(fake.heap), 0);
    for (const Bytes& gap : fake.filled) EXPECT_GE(gap.size(), min_fill);
    objects.insert(objects.end(), t.objects.begin(), t.objects.end());
    objects.insert(objects.end(), fake.filled.begin(), fake.filled.end());
    expect_covered(fake.used, objects);
  }
}

TEST_P(Fillers, an_aligned_object_that_needs_no_gap_has_none) {
  Fake fake(config({8192, 0, 0, 0}));
  Attached t(fake);
  t.allocate(64);
  EXPECT_EQ(fake.offset(terrace_lab_allocate_aligned(&t.lab, 64, 64)), 64U);
  EXPECT_EQ(fake.offset(terrace_lab_allocate_aligned(&t.lab, 64, 8)), 128U);
  EXPECT_TRUE(fake.filled.empty());
  EXPECT_EQ(fake.counters().padding_bytes, 0U);
}

// ---- the limit

terrace_lab_config limited(int sync, int sizing) {
  terrace_lab_config c = config_of({0, 16384, 0, 0}, sync);
  c.levels[core].min_size = 1024;
  c.levels[core].max_size = 65536;
  c.levels[core].sizing = sizing;
  c.young_bytes = std::size_t{1} << 30;
  c.buffers_permille = 125;
  return c;
}

TEST_P(Fillers, all_buffers_together_are_at_most_their_part_of_the_space) {
  for (const int sizing : {TERRACE_LAB_FIXED, TERRACE_LAB_GROWING, TERRACE_LAB_DOUBLING}) {
    Fake fake(limited(GetParam(), sizing));
    const auto size = [&] { return terrace_lab_size(fake.heap, nullptr, core); };
    terrace_lab_layout layout{};
    ASSERT_EQ(terrace_lab_read_layout(fake.heap, core, &layout), 0);
    Attached t(fake);
    t.allocate(16);
    const std::size_t wanted = size();
    EXPECT_GE(wanted, 16384U);
    // So that each may have `even` bytes, and a few more.
    const auto resize = [&](std::size_t even) {
      ASSERT_EQ(terrace_lab_retire_all(fake.heap), 0);
      fake.used = 0;
      terrace_lab_collected(fake.heap, (layout.count * even / 125 + 1) * 1000);
    };
    resize(4096);
    EXPECT_LE(size(), 4096U + 128);
    EXPECT_GE(size(), 1024U);
    t.allocate(16);
    EXPECT_LE(size(), 4096U + 128);
    resize(512);
    EXPECT_EQ(size(), 0U) << "passed over";
    const std::uint64_t labs = fake.counts(core).labs;
    EXPECT_NE(t.allocate(16), Attached::none);
    EXPECT_EQ(fake.counts(core).labs, labs);
    EXPECT_EQ(terrace_lab_install(fake.heap, core, t.lab.top, 4096), -1);
    resize(1 << 20);
    if (sizing == TERRACE_LAB_FIXED) {
      EXPECT_EQ(size(), wanted);
    }
    EXPECT_GE(size(), 1024U);
    t.allocate(16);
    EXPECT_EQ(fake.counts(core).labs, labs + 1);
  }
}

TEST_P(Fillers, the_limit_holds_from_the_beginning) {
  terrace_lab_config c = limited(GetParam(), TERRACE_LAB_FIXED);
  c.young_bytes = 1000;
  const Fake fake(c);
  EXPECT_EQ(terrace_lab_size(fake.heap, nullptr, core), 0U);
}

// ---- what a compiler asks

TEST(Attributes, are_those_of_the_heap) {
  terrace_lab_config c = config_of({1024, 4096, 0, 0});
  c.alignment = 8;
  c.min_fill = 16;
  c.young_bytes = 1 << 20;
  c.levels[TERRACE_LAB_THREAD].sizing = TERRACE_LAB_GROWING;
  c.levels[TERRACE_LAB_THREAD].max_size = 2048;
  for (const int association : {TERRACE_LAB_BY_THREAD, TERRACE_LAB_BY_CORE, TERRACE_LAB_FLIP, TERRACE_LAB_AUTO}) {
    c.association = association;
    const Fake fake(c);
    terrace_lab_attributes a{};
    terrace_lab_read_attributes(fake.heap, &a);
    EXPECT_EQ(a.abi, unsigned{TERRACE_LAB_ABI});
    EXPECT_EQ(a.granule, 8U);
    EXPECT_EQ(a.min_fill, 16U);
    EXPECT_EQ(a.large_threshold, (association == TERRACE_LAB_BY_THREAD ? 2048U : 4096U) - 16);
    EXPECT_EQ(a.top_offset, offsetof(terrace_lab_thread, top));
    EXPECT_EQ(a.end_offset, offsetof(terrace_lab_thread, end));
    EXPECT_EQ(a.active_offset, offsetof(terrace_lab_thread, active));
    EXPECT_EQ(a.buffer_top_offset, 0U);
    EXPECT_EQ(a.buffer_end_offset, 8U);
    terrace_lab_layout layout{};
    ASSERT_EQ(terrace_lab_read_layout(fake.heap, core, &layout), 0);
    EXPECT_EQ(layout.stride, std::size_t{1} << a.buffer_shift);
  }
}

}  // namespace
}  // namespace terrace::lab
