// SPDX-License-Identifier: MIT OR Apache-2.0
// Ranges without a thread: taken from a level, given to it, drained from it, and what is told of how much there is.
#include "arch/sequences.h"
#include "fake.h"
#include "lab/heap.h"
#include "terrace/lab_emit.h"

#include <atomic>
#include <cerrno>
#include <thread>

namespace terrace::lab {
namespace {

constexpr int core = TERRACE_LAB_CORE, processor = TERRACE_LAB_PROCESSOR, source = TERRACE_LAB_LEVELS;

class Ranges : public testing::TestWithParam<int> {
 protected:
  terrace_lab_config config(std::array<std::size_t, TERRACE_LAB_LEVELS> sizes) const { return config_of(sizes, GetParam()); }
  OnOneCpu cpu_;
};
INSTANTIATE_TEST_SUITE_P(Core, Ranges, testing::Values(TERRACE_LAB_CAS, TERRACE_LAB_RESTARTABLE),
                         [](const auto& info) { return info.param == TERRACE_LAB_CAS ? "cas" : "restartable"; });

constexpr Bytes nothing{0, 0};
Bytes take(const Fake& fake, int level, std::size_t min, std::size_t desired) {
  std::size_t actual = 12345;
  void* const p = terrace_lab_take(fake.heap, level, min, desired, &actual);
  if (p == nullptr) {
    EXPECT_EQ(actual, 12345U) << "as it was";
    return nothing;
  }
  return {fake.offset(p), fake.offset(p) + actual};
}
/// What the source would hand out next, taken from it behind the engine's back.
void* elsewhere(Fake& fake, std::size_t bytes) {
  std::size_t actual = 0;
  return terrace_lab_take(fake.heap, source, bytes, bytes, &actual);
}

TEST_P(Ranges, come_from_the_buffer_of_the_level) {
  const Fake fake(config({1024, 4096, 16384, 0}));
  EXPECT_EQ(take(fake, core, 256, 1024), (Bytes{0, 1024}));
  EXPECT_EQ(take(fake, core, 256, 1024), (Bytes{1024, 2048}));
  EXPECT_EQ(take(fake, processor, 64, 64), (Bytes{4096, 4160}));
  EXPECT_EQ(take(fake, TERRACE_LAB_NODE, 64, 64), (Bytes{16384, 16448})) << "there is no such level";
  EXPECT_EQ(take(fake, source, 64, 128), (Bytes{16448, 16576}));
  EXPECT_EQ(take(fake, core, 64, 8192), (Bytes{4160, 12352})) << "larger than a buffer of the core";
}

TEST_P(Ranges, past_all_buffers_are_counted) {
  Fake fake(config({0, 4096, 16384, 0}));
  take(fake, core, 64, 64);
  take(fake, processor, 64, 64);
  EXPECT_EQ(fake.counters().direct, 0U) << "refills are not";
  take(fake, core, 32768, 32768);
  take(fake, source, 64, 128);
  fake.limit = fake.used;
  take(fake, core, 32768, 32768);
  EXPECT_EQ(fake.counters().direct, 2U) << "what was not had is not";
  EXPECT_EQ(fake.counters().direct_bytes, 32768U + 128);
  terrace_lab_count_direct(fake.heap, 1024);
  EXPECT_EQ(fake.counters().direct, 3U);
  EXPECT_EQ(fake.counters().direct_bytes, 32768U + 128 + 1024);
}

TEST_P(Ranges, the_rest_of_a_buffer_is_a_short_one) {
  const Fake fake(config({0, 4096, 0, 0}));
  take(fake, core, 3072, 3072);
  EXPECT_EQ(take(fake, core, 512, 2048), (Bytes{3072, 4096}));
}

TEST_P(Ranges, nothing_is_handed_out_when_there_is_not_the_least) {
  Fake fake(config({0, 4096, 0, 0}));
  fake.limit = 4096;
  take(fake, core, 4000, 4000);
  EXPECT_EQ(take(fake, core, 112, 4096), nothing);
  EXPECT_EQ(take(fake, core, 96, 4096), (Bytes{4000, 4096}));
}

TEST_P(Ranges, that_the_runtime_has_got_elsewhere_are_installed) {
  Fake fake(config({0, 4096, 0, 0}));
  take(fake, core, 4000, 4000);
  void* const p = elsewhere(fake, 8192);
  fake.limit = fake.used;
  ASSERT_EQ(terrace_lab_install(fake.heap, core, p, 8192), 0);
  EXPECT_TRUE(fake.filled.empty()) << "it begins where the buffer ends";
  EXPECT_EQ(fake.counts(core).labs, 2U);
  EXPECT_EQ(take(fake, core, 64, 64), (Bytes{4000, 4064}));
  EXPECT_EQ(take(fake, core, 4096, 4096), (Bytes{4064, 8160}));
}

TEST_P(Ranges, installed_over_a_tail_leave_it_filled) {
  Fake fake(config({0, 4096, 0, 0}));
  take(fake, core, 4000, 4000);
  take(fake, source, 64, 64);
  ASSERT_EQ(terrace_lab_install(fake.heap, core, elsewhere(fake, 1024), 1024), 0);
  EXPECT_EQ(fake.filled, (ListOfBytes{{4000, 4096}}));
  EXPECT_EQ(take(fake, core, 64, 64), (Bytes{4160, 4224}));
}

TEST_P(Ranges, do_not_displace_a_buffer_that_another_thread_has_just_installed) {
  Fake fake(config({0, 4096, 0, 0}));
  take(fake, core, 3072, 3072);
  take(fake, source, 64, 64);
  ASSERT_EQ(terrace_lab_install(fake.heap, core, elsewhere(fake, 4096), 4096), 0) << "longer than what is left";
  fake.limit = fake.used;
  EXPECT_TRUE(fake.filled.empty());
  EXPECT_EQ(take(fake, core, 1024, 1024), (Bytes{3072, 4096}));
  EXPECT_EQ(take(fake, core, 64, 64), (Bytes{4160, 4224}));
}

TEST_P(Ranges, shorter_than_what_the_buffer_has_are_put_aside_until_it_is_used_up) {
  Fake fake(config({0, 4096, 0, 0}));
  take(fake, core, 64, 64);
  ASSERT_EQ(terrace_lab_install(fake.heap, core, elsewhere(fake, 1024), 1024), 0);
  fake.limit = fake.used;
  EXPECT_EQ(fake.counts(core).sidelined, 1U);
  EXPECT_EQ(terrace_lab_free_bytes(fake.heap, core), 4096U - 64 + 1024);
  EXPECT_EQ(take(fake, core, 4032, 4032), (Bytes{64, 4096}));
  EXPECT_EQ(take(fake, core, 64, 64), (Bytes{4096, 4160}));
  EXPECT_EQ(fake.counts(core).labs, 2U);
}

TEST_P(Ranges, put_aside_are_cut_for_a_request_that_is_not_worth_a_refill) {
  terrace_lab_config c = config({0, 4096, 0, 0});
  c.min_fill = 64;
  Fake fake(c);
  take(fake, core, 64, 64);
  ASSERT_EQ(terrace_lab_install(fake.heap, core, elsewhere(fake, 2048), 2048), 0);
  fake.limit = fake.used;
  take(fake, core, 3008, 3008);
  ASSERT_EQ(terrace_lab_max_take(fake.heap, core, 1), 4096U - 64 - 3008 - 64);
  EXPECT_EQ(take(fake, core, 1024, 1024), (Bytes{4096, 5120}));
  EXPECT_EQ(take(fake, core, 1008, 1008), nothing) << "16 bytes would be left, and can not be filled";
  EXPECT_EQ(take(fake, core, 1024, 1024), (Bytes{5120, 6144}));
  EXPECT_EQ(take(fake, core, 960, 960), (Bytes{3072, 4032})) << "the buffer is as it was";
}

TEST_P(Ranges, as_many_are_put_aside_as_there_are_places_for) {
  Fake fake(config({0, 4096, 0, 0}));
  take(fake, core, 64, 64);
  unsigned installed = 0;
  while (installed < 100 && terrace_lab_install(fake.heap, core, elsewhere(fake, 512), 512) == 0) ++installed;
  EXPECT_EQ(installed, 64U);
  EXPECT_EQ(errno, EBUSY);
  terrace_lab_retire_all(fake.heap);
  EXPECT_EQ(fake.counts(core).unused_sidelined_bytes, 64U * 512);
}

/// What holds no object at a level, as a debugger finds it: memory is read, nothing is called.
ListOfBytes seen_from_outside(const Fake& fake, int level) {
  terrace_lab_layout layout{};
  EXPECT_EQ(terrace_lab_read_layout(fake.heap, level, &layout), 0);
  ListOfBytes list;
  const auto add = [&](const void* words, std::size_t reserve) {
    std::uint64_t range[2];
    std::memcpy(range, words, sizeof range);
    if (range[1] == 0) return;
    list.push_back({fake.offset(pointer_to(range[0])), fake.offset(pointer_to(range[1])) + reserve});
  };
  for (unsigned i = 0; i < layout.count; ++i) add(layout.base + i * layout.stride, layout.tail_reserve);
  for (unsigned i = 0; i < *layout.aside_count; ++i) add(layout.aside + std::size_t{2} * i, 0);
  return list;
}

TEST_P(Ranges, and_tails_are_seen_from_outside) {
  for (const std::size_t min_fill : {16, 64}) {
    terrace_lab_config c = config({0, 4096, 16384, 0});
    c.min_fill = min_fill;
    Fake fake(c);
    EXPECT_TRUE(seen_from_outside(fake, core).empty());
    take(fake, core, 1024, 1024);
    ASSERT_EQ(terrace_lab_install(fake.heap, core, elsewhere(fake, 2048), 2048), 0) << "put aside";
    ASSERT_EQ(terrace_lab_install(fake.heap, core, elsewhere(fake, 1024), 1024), 0) << "put aside";
    ListOfBytes seen = seen_from_outside(fake, core);
    EXPECT_EQ(seen, (ListOfBytes{{1024, 4096}, {16384, 18432}, {18432, 19456}}));
    const ListOfBytes above = seen_from_outside(fake, processor);
    EXPECT_EQ(above, (ListOfBytes{{4096, 16384}}));
    seen.insert(seen.end(), above.begin(), above.end());
    EXPECT_EQ(seen, fake.tails());
    fake.collect();
    EXPECT_TRUE(seen_from_outside(fake, core).empty());
  }
}

TEST_P(Ranges, are_not_installed_where_there_is_no_buffer) {
  Fake fake(config({1024, 4096, 0, 0}));
  for (const int level : {-1, int{TERRACE_LAB_THREAD}, processor, source}) {
    errno = 0;
    EXPECT_EQ(terrace_lab_install(fake.heap, level, elsewhere(fake, 512), 512), -1);
    EXPECT_EQ(errno, EINVAL);
  }
}

TEST_P(Ranges, how_much_can_be_taken_is_told_of_the_own_buffer_then_of_those_above) {
  Fake fake(config({0, 4096, 16384, 0}));
  EXPECT_EQ(terrace_lab_max_take(fake.heap, core, 1), 0U);
  take(fake, core, 64, 64);
  EXPECT_EQ(terrace_lab_max_take(fake.heap, core, 1), 4096U - 64);
  EXPECT_EQ(terrace_lab_max_take(fake.heap, core, 4096), 16384U - 4096) << "not enough: the level above is looked at";
  EXPECT_EQ(terrace_lab_max_take(fake.heap, processor, 1), 16384U - 4096);
  EXPECT_EQ(terrace_lab_max_take(fake.heap, source, 1), 0U);
}

TEST_P(Ranges, free_bytes_are_those_of_all_buffers_of_a_level) {
  Fake fake(config({1024, 4096, 16384, 0}));
  Attached a(fake), b(fake);
  a.allocate(64);
  b.allocate(16);
  EXPECT_EQ(terrace_lab_free_bytes(fake.heap, TERRACE_LAB_THREAD), 2048U - 80);
  EXPECT_EQ(terrace_lab_free_bytes(fake.heap, core), 4096U - 2048);
  EXPECT_EQ(terrace_lab_free_bytes(fake.heap, processor), 16384U - 4096);
  for (const int none : {-1, int{TERRACE_LAB_NODE}, source}) EXPECT_EQ(terrace_lab_free_bytes(fake.heap, none), 0U);
  fake.collect();
  for (int l = 0; l < TERRACE_LAB_LEVELS; ++l) EXPECT_EQ(terrace_lab_free_bytes(fake.heap, l), 0U);
}

TEST_P(Ranges, cover_the_space_however_they_were_taken) {
  terrace_lab_config c = config({0, 4096, 16384, 0});
  c.alignment = 8;
  c.min_fill = 16;
  Fake fake(c, 1 << 18);
  ListOfBytes all;
  for (std::size_t i = 0;; ++i) {
    const std::size_t min = 8 * (2 + i * 7 % 200);
    const Bytes got = take(fake, core, min, min + 8 * (i % 50));
    if (got == nothing) break;
    ASSERT_GE(got.size(), min);
    ASSERT_LE(got.size(), min + 8 * (i % 50));
    all.push_back(got);
  }
  EXPECT_GT(sum_of(all), std::size_t{1} << 17);
  ASSERT_EQ(terrace_lab_retire_all(fake.heap), 0);
  for (const Bytes& tail : fake.filled) EXPECT_GE(tail.size(), 16U);
  all.insert(all.end(), fake.filled.begin(), fake.filled.end());
  expect_covered(fake.used, all);
}

// ---- what is stopped at a safepoint

TEST_P(Ranges, a_buffer_that_is_being_refilled_is_no_safepoint) {
  Fake fake(config({1024, 4096, 0, 0}));
  Attached t(fake);
  t.allocate(64);
  Heap& heap = *reinterpret_cast<Heap*>(fake.heap);
  Buffer& b = heap.level(core).buffers[heap.index_here(core)];
  const std::uint64_t top = b.top.load();
  for (const std::uint64_t closed : {refilling, draining}) {
    b.top.store(closed);
    errno = 0;
    EXPECT_EQ(terrace_lab_retire_all(fake.heap), -1);
    EXPECT_EQ(errno, EBUSY);
    EXPECT_TRUE(fake.filled.empty());
    EXPECT_NE(t.lab.top, nullptr);
  }
  b.top.store(top);
  EXPECT_EQ(terrace_lab_retire_all(fake.heap), 0);
  EXPECT_EQ(fake.filled.size(), 2U);
}

// ---- draining

TEST(Drain, by_compare_and_swap_there_is_nothing_to_drain) {
  const OnOneCpu pinned;
  Fake fake(config_of({0, 4096, 0, 0}));
  take(fake, core, 64, 64);
  EXPECT_EQ(terrace_lab_drain(fake.heap), 0U);
}

TEST(Drain, what_a_buffer_holds_is_to_be_had_by_the_next_request) {
  const OnOneCpu pinned;
  Fake fake(config_of({0, 4096, 0, 0}, TERRACE_LAB_RESTARTABLE));
  EXPECT_EQ(terrace_lab_drain(fake.heap), 0U);
  take(fake, core, 64, 64);
  fake.limit = fake.used;
  EXPECT_EQ(terrace_lab_drain(fake.heap), 4096U - 64);
  EXPECT_EQ(fake.counts(core).drained, 1U);
  EXPECT_EQ(fake.counts(core).drained_bytes, 4096U - 64);
  EXPECT_EQ(terrace_lab_free_bytes(fake.heap, core), 4096U - 64);
  EXPECT_EQ(terrace_lab_drain(fake.heap), 0U) << "it is not in a buffer any more";
  EXPECT_EQ(take(fake, core, 4032, 4032), (Bytes{64, 4096}));
  EXPECT_EQ(take(fake, core, 16, 16), nothing);
}

// Two slots: the thread on the other one blocks for good, in the kernel, with all of the space in its buffer.
TEST(Drain, takes_from_cores_that_the_caller_is_not_on) {
  OnOneCpu pinned;
  if (pinned.count() < 2) GTEST_SKIP() << "one cpu";
  Fake fake(config_of({0, 65536, 0, 0}, TERRACE_LAB_RESTARTABLE), 65536);
  std::atomic<int> phase{0};
  unsigned others_slot = 0;
  std::thread other([&] {
    pinned.go_to(1);
    take(fake, core, 64, 64);
    others_slot = terrace_lab_index(fake.heap, core);
    phase = 1;
    while (phase != 2) {  // keeps its slot, which with dense numbers is given away when it sleeps
    }
  });
  while (phase != 1) std::this_thread::yield();
  const bool same = terrace_lab_index(fake.heap, core) == others_slot;
  if (!same) {
    EXPECT_EQ(take(fake, core, 1024, 1024), nothing);
    EXPECT_EQ(terrace_lab_drain(fake.heap), 65536U - 64);
    EXPECT_EQ(take(fake, core, 1024, 1024), (Bytes{64, 1088}));
  }
  phase = 2;
  other.join();
  if (same) GTEST_SKIP() << "both threads have one slot";
}

TEST(Drain, leaves_what_has_no_place_where_it_is) {
  const OnOneCpu pinned;
  Fake fake(config_of({0, 4096, 0, 0}, TERRACE_LAB_RESTARTABLE));
  take(fake, core, 64, 64);
  while (terrace_lab_install(fake.heap, core, elsewhere(fake, 512), 512) == 0) {
  }
  EXPECT_EQ(terrace_lab_drain(fake.heap), 0U);
  EXPECT_EQ(take(fake, core, 64, 64), (Bytes{64, 128}));
}

TEST(Drain, leaves_what_is_too_short_to_be_filled) {
  const OnOneCpu pinned;
  terrace_lab_config c = config_of({0, 4096, 0, 0}, TERRACE_LAB_RESTARTABLE);
  c.alignment = 8;
  c.min_fill = 32;
  Fake fake(c);
  take(fake, core, 4096 - 32 - 16, 4096 - 32 - 16);
  EXPECT_EQ(terrace_lab_drain(fake.heap), 0U);
  ASSERT_EQ(terrace_lab_retire_all(fake.heap), 0);
  EXPECT_EQ(fake.filled, (ListOfBytes{{4048, 4096}}));
}

}  // namespace
}  // namespace terrace::lab
