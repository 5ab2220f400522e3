// SPDX-License-Identifier: MIT OR Apache-2.0
// The counters of all levels add up, after any history, on the rung that TERRACE_RUNG names: they are compared with a census,
// which reads no counter.
#include "census.h"
#include "introspect/statistics.h"
#include "terrace/malloc.h"
#include "terrace/stats.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace terrace::introspect {
namespace {

std::unique_ptr<Snapshot> snapshot() {
  auto s = std::make_unique<Snapshot>();
  take_snapshot(*s);
  return s;
}

std::uint64_t value(const Snapshot& s, Level level, std::size_t c, Column column) {
  return s.by_class[static_cast<std::size_t>(level)][c].get(column);
}

// Blocks that went down from the global level are in the program's hands, in slots or in depots; the census found them there.
void expect_balance(const Snapshot& s) {
  EXPECT_STREQ(heap::heap.check_invariants(), nullptr);
  const heap::Census census = heap::take_census();
  for (std::size_t c = 1; c < heap::class_count; ++c) {
    const std::size_t size = heap::class_sizes.bytes[c];
    SCOPED_TRACE("class of " + std::to_string(size));
    const heap::Census::Class& counted = census.by_class[c];
    const auto net = [&](Level l) { return value(s, l, c, Column::allocations) - value(s, l, c, Column::frees); };
    EXPECT_EQ(net(Level::global), counted.out_of_slabs);
    EXPECT_EQ(net(Level::core), counted.with_program());
    EXPECT_EQ(net(Level::processor), 0 - counted.in_depots);
    EXPECT_EQ(value(s, Level::core, c, Column::held), counted.in_words * size);
    EXPECT_EQ(value(s, Level::processor, c, Column::held), counted.in_depots * size);
    EXPECT_GE(value(s, Level::core, c, Column::allocations), value(s, Level::core, c, Column::frees));
  }
  EXPECT_EQ(value(s, Level::large, 0, Column::allocations) - value(s, Level::large, 0, Column::frees), census.large_blocks);
  EXPECT_EQ(s.dirty, census.dirty_granules << span::granule_shift);
}

std::uint64_t live_blocks(const Snapshot& s) { return s.total[0].get(Column::allocations) - s.total[0].get(Column::frees); }

TEST(Balance, counts_exactly_what_one_thread_does) {
  auto before = snapshot();
  std::vector<void*> blocks;
  for (int i = 0; i < 1000; ++i) blocks.push_back(terrace_malloc(40));
  auto between = snapshot();
  expect_balance(*between);
  const std::size_t c = index(heap::class_for(40));
  EXPECT_EQ(value(*between, Level::core, c, Column::allocations) - value(*before, Level::core, c, Column::allocations), 1000U);
  for (void* p : blocks) terrace_free(p);
  auto after = snapshot();
  expect_balance(*after);
  EXPECT_EQ(value(*after, Level::core, c, Column::frees) - value(*between, Level::core, c, Column::frees), 1000U);
}

TEST(Balance, holds_after_many_threads_with_frees_across_them) {
  const std::uint64_t before = live_blocks(*snapshot());
  std::vector<std::vector<void*>> handed(8);
  for (int round = 0; round < 3; ++round) {
    std::vector<std::thread> threads;
    for (std::size_t t = 0; t < handed.size(); ++t) {
      threads.emplace_back([&, t] {
        std::mt19937 rng(static_cast<unsigned>(t + 1));
        for (void* p : handed[t]) terrace_free(p);
        handed[t].clear();
        for (int i = 0; i < 20000; ++i) {
          void* const p = terrace_malloc(rng() % 3000);
          if (i % 8 == 0) {
            handed[t].push_back(p);
          } else {
            terrace_free(p);
          }
        }
      });
    }
    for (std::thread& t : threads) t.join();
    std::rotate(handed.begin(), handed.begin() + 1, handed.end());
  }
  std::uint64_t live = 0;
  for (const auto& h : handed) live += h.size();
  auto s = snapshot();
  expect_balance(*s);
  EXPECT_EQ(live_blocks(*s) - before, live);
  for (const auto& h : handed) {
    for (void* p : h) terrace_free(p);
  }
  expect_balance(*snapshot());
  terrace_malloc_trim(0);
  auto trimmed = snapshot();
  expect_balance(*trimmed);
  EXPECT_EQ(live_blocks(*trimmed), before);
  if (heap::heap.core().rung() != percpu::Rung::thread) {
    EXPECT_EQ(trimmed->total[static_cast<std::size_t>(Level::core)].get(Column::held), 0U) << "trim drains every slot";
  }
  EXPECT_EQ(trimmed->total[static_cast<std::size_t>(Level::processor)].get(Column::held), 0U);
  EXPECT_EQ(trimmed->dirty, 0U);
}

// Home classes that belong to no size class count nowhere: beyond the last size class begins the next level's row.
TEST(Balance, a_column_that_a_level_does_not_have_is_absent) {
  for (const std::uint8_t c : heap::classes_of_homes) EXPECT_LT(c, heap::class_count);
  auto s = snapshot();
  EXPECT_FALSE(s->total[static_cast<std::size_t>(Level::global)].present[static_cast<std::size_t>(Column::held)]);
}

TEST(Balance, the_budget_bounds_what_the_levels_hold) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([t] {
      std::mt19937 rng(static_cast<unsigned>(t));
      std::vector<void*> blocks;
      for (int round = 0; round < 20; ++round) {
        for (int i = 0; i < 2000; ++i) blocks.push_back(terrace_malloc(rng() % 30000));
        for (void* p : blocks) terrace_free(p);
        blocks.clear();
      }
    });
  }
  for (std::thread& t : threads) t.join();
  auto s = snapshot();
  const std::uint64_t in_levels = s->total[0].get(Column::held) + s->total[1].get(Column::held);
  // Caps that were taken back may still be filled, and each class keeps the least it needs to work.
  EXPECT_LE(in_levels, 2 * heap::heap.budget() + 4 * mib);
  terrace_malloc_trim(0);
}

TEST(Balance, large_blocks_are_counted_and_given_back) {
  auto before = snapshot();
  void* const p = terrace_malloc(5 * mib);
  auto during = snapshot();
  EXPECT_EQ(during->live - before->live, 5 * mib);
  terrace_free(p);
  auto after = snapshot();
  EXPECT_EQ(after->live, before->live);
}

TEST(Statistics, the_json_is_complete_and_says_how_long_it_is) {
  std::vector<char> small(16), large(256 * kib);
  const std::size_t needed = terrace_stats_json(large.data(), large.size());
  ASSERT_LT(needed, large.size());
  EXPECT_EQ(std::string(large.data()).size(), needed);
  EXPECT_EQ(large[needed - 2], '}');
  EXPECT_GT(terrace_stats_json(small.data(), small.size()), small.size());
  EXPECT_EQ(small[15], '\0');
  for (const ColumnInfo& c : columns) EXPECT_NE(std::string(large.data()).find(std::string(c.key)), std::string::npos);
}

}  // namespace
}  // namespace terrace::introspect
