// SPDX-License-Identifier: MIT OR Apache-2.0
// The thread level alone, on a source that counts: when a TLAB is refilled, kept, given up. A TLAB has 1024 bytes, at least 128
// when the space ends, and a tail of more than 1024 / 64 = 16 bytes is kept.
#include "fake.h"

namespace terrace::lab {
namespace {

constexpr std::size_t tlab = 1024, least = 128;

terrace_lab_config only_tlab() { return config_of({tlab, 0, 0, 0}); }

TEST(Tlab, is_empty_at_first_and_refilled_by_one_request) {
  Fake fake(only_tlab());
  Attached t(fake);
  EXPECT_EQ(t.lab.top, nullptr);
  EXPECT_EQ(t.lab.end, nullptr);
  for (std::size_t i = 0; i < tlab / 32; ++i) ASSERT_EQ(t.allocate(32), i * 32);
  EXPECT_EQ(fake.calls, 1U);
  EXPECT_EQ(t.tail(), 0U);
  EXPECT_EQ(t.allocate(32), tlab);
  EXPECT_EQ(fake.calls, 2U);
  const terrace_lab_counts c = fake.counts(TERRACE_LAB_THREAD);
  EXPECT_EQ(c.labs, 2U);
  EXPECT_EQ(c.lab_bytes, 2 * tlab);
  EXPECT_EQ(c.short_labs, 0U);
  EXPECT_EQ(c.partial, 0U);
}

TEST(Tlab, a_small_tail_is_given_up) {
  Fake fake(only_tlab());
  fake.gap = 64;
  Attached t(fake);
  t.allocate_many(21, 48);
  ASSERT_EQ(t.tail(), 16U);
  EXPECT_EQ(t.allocate(48), tlab + 64);
  EXPECT_EQ(fake.filled, (ListOfBytes{{1008, 1024}}));
  EXPECT_EQ(fake.counts(TERRACE_LAB_THREAD).partial, 1U);
  EXPECT_EQ(fake.counts(TERRACE_LAB_THREAD).wasted_bytes, 16U);
}

TEST(Tlab, a_neighbour_is_joined_and_nothing_is_lost) {
  Fake fake(only_tlab());
  Attached t(fake);
  t.allocate_many(21, 48);
  EXPECT_EQ(t.allocate(48), 1008U);
  EXPECT_EQ(t.tail(), tlab + 16 - 48);
  EXPECT_TRUE(fake.filled.empty());
  EXPECT_EQ(fake.counts(TERRACE_LAB_THREAD).wasted_bytes, 0U);
}

TEST(Tlab, a_large_tail_is_kept_less_insistently_each_time) {
  Fake fake(only_tlab());
  fake.gap = 64;
  Attached t(fake);
  t.allocate_many(15, 64);
  ASSERT_EQ(t.tail(), 64U);
  // The limit is 16, 48, then 80.
  EXPECT_EQ(t.allocate(128), tlab + 64);
  EXPECT_EQ(t.allocate(128), tlab + 64 + 128 + 64);
  EXPECT_EQ(fake.counters().direct, 2U);
  EXPECT_EQ(fake.counters().direct_bytes, 256U);
  EXPECT_EQ(t.tail(), 64U);
  EXPECT_TRUE(fake.filled.empty());
  t.allocate(128);
  EXPECT_EQ(fake.counters().direct, 2U);
  EXPECT_EQ(t.tail(), tlab - 128);
  EXPECT_EQ(fake.filled, (ListOfBytes{{960, 1024}}));
}

TEST(Tlab, what_is_larger_comes_from_the_source) {
  Fake fake(only_tlab());
  Attached t(fake);
  t.allocate(32);
  EXPECT_EQ(t.allocate(2048), tlab);
  EXPECT_EQ(fake.counters().direct, 1U);
  EXPECT_EQ(fake.counters().direct_bytes, 2048U);
  EXPECT_EQ(t.allocate(32), 32U) << "the TLAB is as it was";
}

TEST(Tlab, the_last_one_is_shorter) {
  Fake fake(only_tlab());
  fake.limit = tlab + 512;
  Attached t(fake);
  t.allocate_many(32, 32);
  EXPECT_EQ(t.allocate(32), tlab);
  EXPECT_EQ(t.tail(), 512U - 32);
  EXPECT_EQ(fake.counts(TERRACE_LAB_THREAD).short_labs, 1U);
  EXPECT_EQ(fake.counts(TERRACE_LAB_THREAD).lab_bytes, tlab + 512);
}

TEST(Tlab, without_room_for_the_least_buffer_objects_come_from_the_source_and_then_none) {
  Fake fake(only_tlab());
  fake.limit = tlab + least / 2;
  Attached t(fake);
  t.allocate_many(21, 48);
  EXPECT_EQ(t.allocate(32), tlab);
  EXPECT_EQ(t.allocate(32), tlab + 32);
  EXPECT_EQ(t.allocate(32), Attached::none);
  EXPECT_EQ(t.allocate(16), 1008U) << "the old tail is still there";
  EXPECT_EQ(t.allocate(16), Attached::none);
  EXPECT_EQ(fake.counts(TERRACE_LAB_THREAD).labs, 1U);
  EXPECT_EQ(fake.counters().direct, 2U);
  EXPECT_TRUE(fake.filled.empty());
}

TEST(Tlab, near_the_end_of_the_space_there_are_only_objects) {
  terrace_lab_config c = only_tlab();
  c.young_bytes = 64000;
  c.stop_permille = 100;
  Fake fake(c, 64000);
  Attached t(fake);
  while (fake.limit - fake.used >= 6400) t.allocate_many(1, 1024);
  const std::uint64_t labs = fake.counts(TERRACE_LAB_THREAD).labs;
  EXPECT_EQ(labs, 57U);
  t.allocate_many(10, 512);
  EXPECT_EQ(fake.counts(TERRACE_LAB_THREAD).labs, labs);
  EXPECT_EQ(fake.counters().direct, 10U);
}

TEST(Tlab, doubles_at_refills_and_halves_at_collections) {
  terrace_lab_config c = only_tlab();
  c.young_bytes = 1 << 20;
  c.levels[0].sizing = TERRACE_LAB_DOUBLING;
  c.levels[0].max_size = 8192;
  Fake fake(c);
  Attached t(fake);
  const auto size = [&] { return terrace_lab_size(fake.heap, &t.lab, TERRACE_LAB_THREAD); };
  EXPECT_EQ(size(), tlab);
  for (const std::size_t next : {2048U, 4096U, 8192U, 8192U}) {
    t.allocate_many(1, t.tail() + 16);
    EXPECT_EQ(size(), next);
    t.allocate_many(t.tail() / 16, 16);
  }
  for (const std::size_t next : {4096U, 2048U, 1024U, 512U, 256U, 128U, 128U}) {
    fake.collect();
    EXPECT_EQ(size(), next);
  }
}

TEST(Tlab, grows_to_what_is_a_fiftieth_of_its_share) {
  terrace_lab_config c = only_tlab();
  c.young_bytes = 1 << 20;
  c.levels[0].sizing = TERRACE_LAB_GROWING;
  Fake fake(c);
  Attached a(fake), b(fake);
  a.allocate_many(300, 64);
  b.allocate_many(100, 64);
  fake.collect();
  const std::size_t size_a = terrace_lab_size(fake.heap, &a.lab, TERRACE_LAB_THREAD);
  const std::size_t size_b = terrace_lab_size(fake.heap, &b.lab, TERRACE_LAB_THREAD);
  EXPECT_EQ(size_a, (std::size_t{1} << 20) * 3 / 4 / 50 / 16 * 16);
  EXPECT_EQ(size_b, (std::size_t{1} << 20) / 4 / 50 / 16 * 16);
}

TEST(Tlab, detaching_fills_the_tail_and_keeps_the_counts) {
  Fake fake(only_tlab());
  Attached t(fake);
  t.allocate_many(3, 32);
  t.allocate(2048);
  t.detach();
  EXPECT_EQ(fake.filled, (ListOfBytes{{96, 1024}}));
  const terrace_lab_counters c = fake.counters();
  EXPECT_EQ(c.level[0].labs, 1U);
  EXPECT_EQ(c.level[0].lab_bytes, tlab);
  EXPECT_EQ(c.level[0].partial, 1U);
  EXPECT_EQ(c.level[0].wasted_bytes, tlab - 96);
  EXPECT_EQ(c.level[0].retired_bytes, 0U) << "no collection";
  EXPECT_EQ(c.direct, 1U);
  EXPECT_EQ(c.direct_bytes, 2048U);
}

TEST(Tlab, a_thread_knows_what_it_has_allocated) {
  Fake fake(only_tlab());
  fake.gap = 64;
  Attached t(fake);
  const auto allocated = [&] { return terrace_lab_allocated_bytes(&t.lab); };
  EXPECT_EQ(allocated(), 0U);
  t.allocate_many(3, 32);
  EXPECT_EQ(allocated(), 96U) << "in line";
  t.allocate(2048);
  EXPECT_EQ(allocated(), 96U + 2048);
  t.allocate_many(100, 48);
  EXPECT_EQ(allocated(), sum_of(t.objects)) << "without the tails of buffers that were given up";
  fake.collect();
  EXPECT_EQ(allocated(), sum_of(t.objects));
  t.allocate(16);
  EXPECT_EQ(allocated(), sum_of(t.objects));
}

TEST(Tlab, threads_come_and_go_in_any_order) {
  Fake fake(only_tlab());
  std::vector<std::unique_ptr<Attached>> threads;
  for (int i = 0; i < 5; ++i) threads.push_back(std::make_unique<Attached>(fake));
  for (const auto& t : threads) t->allocate_many(1, 16);
  for (const std::size_t leaving : {2U, 0U, 2U}) threads.erase(threads.begin() + static_cast<std::ptrdiff_t>(leaving));
  EXPECT_EQ(fake.filled.size(), 3U);
  EXPECT_EQ(fake.tails().size(), 2U);
  threads.clear();
  EXPECT_EQ(fake.filled.size(), 5U);
  EXPECT_EQ(fake.counts(TERRACE_LAB_THREAD).labs, 5U);
}

}  // namespace
}  // namespace terrace::lab
