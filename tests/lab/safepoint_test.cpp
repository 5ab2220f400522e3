// SPDX-License-Identifier: MIT OR Apache-2.0
// Requests at each level, buffers that end, what a collection decides.
#include "fake.h"
#include "terrace/lab_emit.h"

#include <unistd.h>

namespace terrace::lab {
namespace {

constexpr int core = TERRACE_LAB_CORE;

class BothWays : public testing::TestWithParam<int> {
 protected:
  terrace_lab_config config(std::array<std::size_t, TERRACE_LAB_LEVELS> sizes) const { return config_of(sizes, GetParam()); }
  OnOneCpu cpu_;
};
INSTANTIATE_TEST_SUITE_P(Core, BothWays, testing::Values(TERRACE_LAB_CAS, TERRACE_LAB_RESTARTABLE),
                         [](const auto& info) { return info.param == TERRACE_LAB_CAS ? "cas" : "restartable"; });

TEST_P(BothWays, allocate_at_begins_where_it_is_told) {
  Fake fake(config({1024, 4096, 16384, 32768}));
  Attached t(fake);
  EXPECT_EQ(t.allocate_at(TERRACE_LAB_NODE, 64), 0U);
  EXPECT_EQ(fake.counts(TERRACE_LAB_NODE).labs, 1U);
  EXPECT_EQ(fake.counts(TERRACE_LAB_PROCESSOR).labs, 0U);
  EXPECT_EQ(t.allocate_at(TERRACE_LAB_PROCESSOR, 64), 64U);
  EXPECT_EQ(fake.counts(TERRACE_LAB_PROCESSOR).labs, 1U);
  EXPECT_EQ(fake.counts(core).labs, 0U);
  EXPECT_EQ(t.allocate_at(core, 64), 128U);
  EXPECT_EQ(fake.counts(core).labs, 1U);
  EXPECT_EQ(t.allocate_core(64), 192U);
  EXPECT_EQ(t.lab.top, nullptr) << "the thread level is not asked";
  EXPECT_EQ(t.allocate_at(TERRACE_LAB_THREAD, 64), 256U) << "the next level that exists";
  EXPECT_EQ(fake.calls, 1U);
}

TEST_P(BothWays, an_object_larger_than_a_buffer_goes_past_it) {
  Fake fake(config({1024, 4096, 0, 0}));
  Attached t(fake);
  t.allocate(64);
  t.allocate(8192);
  EXPECT_EQ(fake.counters().direct, 1U);
  EXPECT_EQ(fake.counters().direct_bytes, 8192U);
  EXPECT_EQ(fake.counts(core).labs, 1U);
  EXPECT_TRUE(fake.filled.empty());
}

TEST_P(BothWays, a_buffer_with_much_room_is_not_given_up_for_a_large_request) {
  Fake fake(config({0, 4096, 0, 0}));
  Attached t(fake);
  t.allocate_many(1, 1024);
  t.allocate_many(1, 3584);  // more than an eighth of a buffer, and 3072 are left
  EXPECT_EQ(fake.counters().direct, 1U);
  EXPECT_EQ(t.allocate(1024), 1024U);
}

TEST_P(BothWays, neighbours_are_joined) {
  Fake fake(config({0, 4096, 0, 0}));
  Attached t(fake);
  t.allocate_many(12, 336);
  ASSERT_EQ(sum_of(fake.tails()), 64U);
  EXPECT_EQ(t.allocate(336), 4032U);
  EXPECT_TRUE(fake.filled.empty());
  EXPECT_EQ(fake.counts(core).partial, 0U);
  EXPECT_EQ(fake.counts(core).transactions, 2U);
}

TEST_P(BothWays, a_tail_that_is_given_up_is_filled) {
  Fake fake(config({0, 4096, 0, 0}));
  fake.gap = 128;
  Attached t(fake);
  t.allocate_many(12, 336);
  EXPECT_EQ(t.allocate(336), 4096U + 128);
  EXPECT_EQ(fake.filled, (ListOfBytes{{4032, 4096}}));
  EXPECT_EQ(fake.counts(core).wasted_bytes, 64U);
}

TEST_P(BothWays, a_request_for_a_buffer_takes_the_rest_of_one) {
  Fake fake(config({1024, 4096, 0, 0}));
  Attached t(fake);
  t.allocate_at(core, 256);
  t.allocate_many(3 * 1024 / 32, 32);
  ASSERT_EQ(fake.tails(), (ListOfBytes{{3328, 4096}}));
  t.allocate(32);
  EXPECT_EQ(fake.counts(TERRACE_LAB_THREAD).short_labs, 1U);
  EXPECT_EQ(fake.tails(), (ListOfBytes{{3360, 4096}})) << "all of it, less the object";
  EXPECT_EQ(fake.calls, 1U);
}

TEST_P(BothWays, an_exhausted_source_leaves_the_buffer_as_it_was) {
  Fake fake(config({0, 4096, 0, 0}));
  fake.limit = 4096 + 256;
  Attached t(fake);
  t.allocate_many(12, 336);
  EXPECT_EQ(t.allocate(336), Attached::none);
  EXPECT_EQ(t.allocate(256), 4096U) << "the source has this much";
  EXPECT_EQ(t.allocate(336), Attached::none);
  EXPECT_EQ(t.allocate(64), 4032U);
  EXPECT_EQ(t.allocate(16), Attached::none);
  EXPECT_EQ(fake.counts(core).labs, 1U);
  terrace_lab_retire_all(fake.heap);
  EXPECT_TRUE(fake.filled.empty());
}

TEST_P(BothWays, near_the_end_of_the_space_no_buffer_is_refilled) {
  terrace_lab_config c = config({1024, 4096, 0, 0});
  c.young_bytes = 65536;
  c.stop_permille = 250;
  Fake fake(c, 65536);
  Attached t(fake);
  const std::size_t stop = 65536 / 1000 * 250;
  while (fake.limit - fake.used >= stop) t.allocate_many(1, 64);
  const std::uint64_t labs = fake.counts(core).labs;
  while (t.allocate(64) != Attached::none) {
  }
  EXPECT_EQ(fake.counts(core).labs, labs);
  EXPECT_GE(fake.counters().direct, stop / 64 - 4096 / 64 - 1);
}

TEST_P(BothWays, association_by_core_leaves_the_thread_level_empty) {
  terrace_lab_config c = config({1024, 4096, 0, 0});
  c.association = TERRACE_LAB_BY_CORE;
  Fake fake(c);
  Attached t(fake);
  t.allocate_many(100, 32);
  EXPECT_EQ(terrace_lab_associated(fake.heap), TERRACE_LAB_BY_CORE);
  EXPECT_EQ(t.lab.top, nullptr);
  EXPECT_EQ(fake.counts(TERRACE_LAB_THREAD).labs, 0U);
  EXPECT_EQ(fake.counts(core).labs, 1U);
  fake.collect();
  EXPECT_EQ(fake.counters().by_core, 1U);
  EXPECT_EQ(fake.counters().flips, 0U);
}

TEST_P(BothWays, buffers_double_at_refills_and_halve_at_collections) {
  terrace_lab_config c = config({0, 4096, 0, 0});
  c.young_bytes = std::size_t{16} << 20;
  c.levels[core].sizing = TERRACE_LAB_DOUBLING;
  c.levels[core].max_size = 16384;
  Fake fake(c);
  Attached t(fake);
  const auto size = [&] { return terrace_lab_size(fake.heap, nullptr, core); };
  t.allocate(16);
  EXPECT_EQ(size(), 8192U);
  t.allocate_many(4096 / 16, 16);
  EXPECT_EQ(size(), 16384U);
  fake.collect();
  EXPECT_EQ(size(), 8192U);
}

TEST_P(BothWays, a_visitor_is_told_the_level) {
  Fake fake(config({1024, 4096, 16384, 32768}));
  Attached t(fake);
  t.allocate(16);
  std::vector<int> levels;
  terrace_lab_walk(
      fake.heap, [](void* argument, int level, void*, void*) { static_cast<std::vector<int>*>(argument)->push_back(level); },
      &levels);
  EXPECT_EQ(levels, (std::vector<int>{0, 1, 2, 3}));
}

// ---- flip: more unused bytes than fit into all buffers of the other kind, if they were as large

constexpr std::size_t tlab = 16384, clab = 65536;

class Flip : public testing::TestWithParam<int> {
 protected:
  Flip() {
    terrace_lab_config c = config_of({tlab, clab, 0, 0}, GetParam());
    c.association = TERRACE_LAB_FLIP;
    fake_ = std::make_unique<Fake>(c, std::size_t{256} << 20);
  }
  // So many threads that each have a TLAB with one object.
  void allocate_by(std::size_t threads) {
    std::vector<std::unique_ptr<Attached>> all;
    for (std::size_t i = 0; i < threads; ++i) all.push_back(std::make_unique<Attached>(*fake_));
    for (const auto& t : all) t->allocate_many(1, 16);
    fake_->collect();
  }
  // More threads than the machine has cpus, whatever counts as one.
  static constexpr std::size_t many = 600;
  OnOneCpu cpu_;
  std::unique_ptr<Fake> fake_;
};
INSTANTIATE_TEST_SUITE_P(Core, Flip, testing::Values(TERRACE_LAB_CAS, TERRACE_LAB_RESTARTABLE),
                         [](const auto& info) { return info.param == TERRACE_LAB_CAS ? "cas" : "restartable"; });

TEST_P(Flip, begins_by_thread_and_stays_there_with_few_threads) {
  EXPECT_EQ(terrace_lab_associated(fake_->heap), TERRACE_LAB_BY_THREAD);
  allocate_by(1);
  EXPECT_EQ(terrace_lab_associated(fake_->heap), TERRACE_LAB_BY_THREAD);
  EXPECT_EQ(fake_->counters().flips, 0U);
}

TEST_P(Flip, goes_to_the_core_when_many_threads_leave_their_buffers_unused) {
  if (std::size_t{4} * static_cast<std::size_t>(sysconf(_SC_NPROCESSORS_CONF)) > many) GTEST_SKIP() << "too many cpus";
  allocate_by(many);
  EXPECT_EQ(terrace_lab_associated(fake_->heap), TERRACE_LAB_BY_CORE);
  EXPECT_EQ(fake_->counters().flips, 1U);
  EXPECT_EQ(fake_->counters().by_core, 1U);
  allocate_by(many);
  EXPECT_EQ(terrace_lab_associated(fake_->heap), TERRACE_LAB_BY_CORE)
      << "one core's buffer is not more than one for each thread";
}

// By compare-and-swap, where a buffer belongs to a core whose number the test can choose.
TEST_P(Flip, comes_back_when_cores_leave_more_unused_than_the_threads_could) {
  if (GetParam() != TERRACE_LAB_CAS) GTEST_SKIP() << "slots of critical sections may be dense";
  if (std::size_t{4} * static_cast<std::size_t>(sysconf(_SC_NPROCESSORS_CONF)) > many) GTEST_SKIP() << "too many cpus";
  allocate_by(many);
  ASSERT_EQ(terrace_lab_associated(fake_->heap), TERRACE_LAB_BY_CORE);
  Attached t(*fake_);
  std::size_t buffers = 0;
  for (std::size_t i = 0; i < cpu_.count() && buffers < 2; ++i) {
    cpu_.go_to(i);
    t.allocate(16);
    buffers = fake_->tails().size();
  }
  if (buffers < 2) GTEST_SKIP() << "one core";
  fake_->collect();
  EXPECT_EQ(terrace_lab_associated(fake_->heap), TERRACE_LAB_BY_THREAD);
  EXPECT_EQ(fake_->counters().flips, 2U);
  EXPECT_EQ(fake_->counters().by_core, 1U);
}

// ---- the same by what a runtime finds in TLABs of its own

class FlipByReport : public testing::Test {
 protected:
  FlipByReport() {
    terrace_lab_config c = config_of({0, clab, 0, 0}, TERRACE_LAB_CAS);
    c.association = TERRACE_LAB_FLIP;
    fake_ = std::make_unique<Fake>(c, std::size_t{256} << 20);
    terrace_lab_layout layout;
    terrace_lab_read_layout(fake_->heap, TERRACE_LAB_CORE, &layout);
    cores_ = layout.count;
  }
  // What the association is after a collection that found these TLABs.
  int after(unsigned threads, std::uint64_t unused) {
    terrace_lab_report_tlabs(fake_->heap, threads, unused, tlab);
    fake_->collect();
    return terrace_lab_associated(fake_->heap);
  }
  OnOneCpu cpu_;
  std::unique_ptr<Fake> fake_;
  unsigned cores_;
};

TEST_F(FlipByReport, goes_to_the_core_when_more_is_unused_than_the_cores_could_leave) {
  EXPECT_EQ(after(600, cores_ * tlab), TERRACE_LAB_BY_THREAD);
  EXPECT_EQ(after(600, cores_ * tlab + 16), TERRACE_LAB_BY_CORE);
}

TEST_F(FlipByReport, adds_reports_up_and_forgets_them_at_the_collection) {
  terrace_lab_report_tlabs(fake_->heap, 300, cores_ * tlab, tlab / 2);
  EXPECT_EQ(after(300, 16), TERRACE_LAB_BY_CORE);
  EXPECT_EQ(after(600, std::uint64_t{1} << 40), TERRACE_LAB_BY_CORE) << "by core, TLABs are not looked at";
  EXPECT_EQ(fake_->counters().flips, 1U);
}

TEST_F(FlipByReport, comes_back_when_a_core_leaves_more_than_the_threads_that_allocate_could) {
  ASSERT_EQ(after(600, cores_ * tlab + 16), TERRACE_LAB_BY_CORE);
  std::size_t actual = 0;
  std::size_t buffers = 0;
  for (std::size_t i = 0; i < cpu_.count() && buffers < 2; ++i) {
    cpu_.go_to(i);
    ASSERT_NE(terrace_lab_take(fake_->heap, TERRACE_LAB_CORE, 16, 16, &actual), nullptr);
    buffers = fake_->tails().size();
  }
  if (buffers < 2) GTEST_SKIP() << "one core";
  EXPECT_EQ(after(1, 0), TERRACE_LAB_BY_THREAD) << "two buffers, one thread";
}

TEST_P(Flip, counts_what_threads_leave_that_end) {
  if (std::size_t{4} * static_cast<std::size_t>(sysconf(_SC_NPROCESSORS_CONF)) > many) GTEST_SKIP() << "too many cpus";
  for (std::size_t i = 0; i < many; ++i) Attached(*fake_).allocate_many(1, 16);
  Attached last(*fake_);  // with the size of its TLAB
  fake_->collect();
  EXPECT_EQ(terrace_lab_associated(fake_->heap), TERRACE_LAB_BY_CORE);
}

// ---- auto: more unused bytes than a twentieth of the space

TEST(Auto, goes_to_the_core_while_tlabs_waste_much_of_the_space_and_tries_them_again) {
  constexpr std::size_t young = std::size_t{1} << 20, much = young / 20;
  terrace_lab_config c = config_of({0, clab, 0, 0}, TERRACE_LAB_CAS);
  c.association = TERRACE_LAB_AUTO;
  c.young_bytes = young;
  Fake fake(c);
  const auto after = [&](std::uint64_t unused) {
    terrace_lab_report_tlabs(fake.heap, 600, unused, tlab);
    fake.collect();
    return terrace_lab_associated(fake.heap);
  };
  EXPECT_EQ(terrace_lab_associated(fake.heap), TERRACE_LAB_BY_THREAD);
  EXPECT_EQ(after(much), TERRACE_LAB_BY_THREAD);
  EXPECT_EQ(after(much + 1), TERRACE_LAB_BY_CORE);
  EXPECT_EQ(after(0), TERRACE_LAB_BY_THREAD) << "a trial";
  EXPECT_EQ(after(much + 1), TERRACE_LAB_BY_CORE);
  EXPECT_EQ(after(0), TERRACE_LAB_BY_CORE) << "two collections, this time";
  EXPECT_EQ(after(0), TERRACE_LAB_BY_THREAD);
  EXPECT_EQ(fake.counters().flips, 4U);
}

}  // namespace
}  // namespace terrace::lab
