// SPDX-License-Identifier: MIT OR Apache-2.0
// The heap profiler samples by bytes, wherever a block comes from: blocks that go round within a slot, refills, large ones.
// What it estimates lies within six standard errors of what was allocated: by chance that fails once in 500 million times.
#include "sampling.h"

#include "introspect/statistics.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <map>
#include <memory>
#include <thread>
#include <vector>

namespace terrace {
namespace {

/// What a sampled allocation of a class is drawn by.
std::uint64_t weighed(std::size_t size) {
  return size <= heap::SizeRule::largest ? heap::class_size(heap::class_for(size)) : size;
}
// `n` allocations, each sampled with probability p, gave `found` samples.
void expect_samples(double found, double n, double p, const std::string& what) {
  EXPECT_NEAR(found, n * p, sigmas * std::sqrt(n * p * (1 - p)) + 1) << what;
}

TEST_F(Sampling, counts_pairs_that_no_slow_path_sees) {
  for (const std::size_t size : {1UL, 16UL, 40UL, 64UL, 100UL, 1000UL, 5000UL, 40000UL, 256UL * 1024}) {
    const std::uint64_t period = 48 * weighed(size);
    start(period);
    const std::uint64_t before = taken();
    constexpr int pairs = 100'000;
    for (int i = 0; i < pairs; ++i) {
      void* const p = terrace_malloc(size);
      ASSERT_NE(p, nullptr);
      terrace_free(p);
    }
    expect_samples(static_cast<double>(taken() - before), pairs, probability(weighed(size), period), std::to_string(size));
    EXPECT_EQ(taken(), dropped());
  }
}

TEST_F(Sampling, counts_large_pairs) {
  for (const std::size_t size : {256UL * 1024 + 1, 1UL << 20, 4UL << 20, 9UL << 20}) {
    const std::uint64_t period = 8 * size;
    start(period);
    const std::uint64_t before = taken();
    constexpr int pairs = 10'000;
    for (int i = 0; i < pairs; ++i) terrace_free(terrace_malloc(size));
    expect_samples(static_cast<double>(taken() - before), pairs, probability(size, period), std::to_string(size));
    EXPECT_EQ(taken(), dropped());
  }
}

TEST_F(Sampling, counts_aligned_and_zeroed_blocks_as_others) {
  start(64 * 256);
  std::uint64_t before = taken();
  constexpr int pairs = 50'000;
  for (int i = 0; i < pairs; ++i) {
    void* const p = terrace_aligned_alloc(256, 256);
    EXPECT_EQ(address_of(p) % 256, 0U);
    terrace_free(p);
  }
  expect_samples(static_cast<double>(taken() - before), pairs, probability(256, 64 * 256), "aligned");
  before = taken();
  for (int i = 0; i < pairs; ++i) {
    auto* const p = static_cast<unsigned char*>(terrace_calloc(2, 128));
    EXPECT_EQ(p[0] | p[128] | p[255], 0);
    p[0] = p[128] = p[255] = 0xff;
    terrace_free(p);
  }
  expect_samples(static_cast<double>(taken() - before), pairs, probability(256, 64 * 256), "zeroed");
}

/// What the samples say of blocks by site.
class Sites {
 public:
  explicit Sites(std::uint64_t period) : period_(period) {}
  std::vector<Site> all;
  void check(const char* what) {
    std::map<std::uint64_t, std::size_t> site_of;
    for (std::size_t i = 0; i < all.size(); ++i) {
      for (void* const p : all[i].blocks) site_of[address_of(p)] = i;
    }
    std::vector<double> found(all.size());
    for (std::uint32_t n = 1; n < profiler.table().used(); ++n) {
      const profile::Sample& s = profiler.table().at(n);
      if (s.state != profile::State::live) continue;
      ASSERT_TRUE(site_of.contains(s.address)) << what << ": a sample of a block that is not live";
      const Site& site = all[site_of[s.address]];
      EXPECT_EQ(s.size, site.size) << what;
      EXPECT_EQ(s.period, period_);
      EXPECT_EQ(s.weighed, weighed(site.size));
      ++found[site_of[s.address]];
    }
    double samples = 0, mean = 0, variance = 0;
    for (std::size_t i = 0; i < all.size(); ++i) {
      const double p = probability(weighed(all[i].size), period_), blocks = static_cast<double>(all[i].blocks.size());
      expect_samples(found[i], blocks, p, std::string(what) + ", site " + std::to_string(i));
      samples += found[i];
      mean += blocks * p;
      variance += blocks * p * (1 - p);
    }
    EXPECT_NEAR(samples, mean, sigmas * std::sqrt(variance)) << what << ", all sites";
  }
  void free_all() {
    for (Site& site : all) {
      for (void* const p : site.blocks) terrace_free(p);
    }
    EXPECT_EQ(taken(), dropped());
  }

 private:
  std::uint64_t period_;
};

// Deciding at refills alone would take one of the two sites every time.
TEST_F(Sampling, estimates_both_sites_of_an_alternation) {
  constexpr std::uint64_t period = 4096;
  for (const bool keep_first : {true, false}) {
    start(period);
    Sites sites(period);
    sites.all.assign(2, {.size = 64, .blocks = {}});
    for (int i = 0; i < 30'000; ++i) {
      void* temporary = nullptr;
      if (!keep_first) temporary = terrace_malloc(64);
      sites.all[0].blocks.push_back(terrace_malloc(64));
      sites.all[1].blocks.push_back(terrace_malloc(64));
      if (keep_first) temporary = terrace_malloc(64);
      terrace_free(temporary);
    }
    sites.check(keep_first ? "keep, temporary" : "temporary, keep");
    sites.free_all();
  }
}

TEST_F(Sampling, estimates_each_of_many_sites) {
  constexpr std::uint64_t period = 16 * 1024;
  start(period);
  Sites sites(period);
  for (std::size_t size = 16; size <= (4UL << 20); size = size * 7 / 4 + 8) sites.all.push_back({.size = size, .blocks = {}});
  for (Site& site : sites.all) {  // churn of one in two, and 100 samples or all that may be had
    const std::size_t wanted = std::min<std::size_t>(std::max<std::size_t>(100 * period / site.size, 8), 60'000);
    for (std::size_t i = 0; i < wanted; ++i) {
      site.blocks.push_back(terrace_malloc(site.size));
      terrace_free(terrace_malloc(site.size));
      if (i % 2 == 1) {
        terrace_free(site.blocks[i / 2]);
        site.blocks[i / 2] = terrace_malloc(site.size);
      }
    }
  }
  sites.check("many sites");
  sites.free_all();
}

TEST_F(Sampling, estimates_what_threads_allocate_and_others_free) {
  constexpr std::uint64_t period = 8 * 1024;
  constexpr unsigned threads = 4;
  start(period);
  Sites sites(period);
  sites.all.assign(threads, {.size = 0, .blocks = {}});
  std::vector<std::vector<void*>> to_free(threads);
  const auto in_threads = [](auto body) {
    std::vector<std::jthread> running;
    for (unsigned t = 0; t < threads; ++t) running.emplace_back([=] { body(t); });
  };
  in_threads([&](unsigned t) {
    Site& site = sites.all[t];
    site.size = std::size_t{48} << t;
    for (int i = 0; i < 20'000; ++i) (i % 2 == 0 ? site.blocks : to_free[t]).push_back(terrace_malloc(site.size));
  });
  in_threads([&](unsigned t) {
    for (void* const p : to_free[(t + 1) % threads]) terrace_free(p);
  });
  sites.check("threads");
  sites.free_all();
}

TEST_F(Sampling, follows_realloc) {
  constexpr std::uint64_t period = 8 * 1024;
  start(period);
  Sites sites(period);
  for (const std::size_t size : {100UL, 3000UL, 300UL * 1024, 2UL << 20}) sites.all.push_back({.size = size, .blocks = {}});
  for (Site& site : sites.all) {
    for (std::size_t i = 0; i < std::max<std::size_t>(200 * period / site.size, 20); ++i) {
      void* p = terrace_malloc(24);
      for (const std::size_t size : {400UL, 20UL, site.size + site.size / 50, site.size}) {
        p = terrace_realloc(p, size);
        ASSERT_NE(p, nullptr);
        std::memset(p, 1, std::min<std::size_t>(size, 4096));
        ASSERT_GE(terrace_malloc_usable_size(p), size);
      }
      site.blocks.push_back(p);
    }
  }
  // With room to grow, and in place, a block may lie in another class than malloc's: each live sample's own weight counts.
  double estimate = 0, sum = 0, variance = 0;
  for (std::uint32_t n = 1; n < profiler.table().used(); ++n) {
    const profile::Sample& s = profiler.table().at(n);
    if (s.state != profile::State::live) continue;
    const double p = probability(s.weighed, s.period), bytes = static_cast<double>(s.size);
    estimate += bytes / p;
    variance += (1 - p) * (bytes / p) * (bytes / p);
  }
  for (const Site& site : sites.all) sum += static_cast<double>(site.size * site.blocks.size());
  EXPECT_NEAR(estimate, sum, sigmas * std::sqrt(variance) + 1);
  sites.free_all();
}

// What is armed is not lost for the statistics, and what is sampled counts as a large block only.
TEST_F(Sampling, leaves_the_number_of_allocations_right) {
  const auto allocations = [] {
    const auto s = std::make_unique<introspect::Snapshot>();
    introspect::take_snapshot(*s);
    const auto of = [&](introspect::Level level, std::size_t c) {
      return s->by_class[static_cast<std::size_t>(level)][c].get(introspect::Column::allocations);
    };
    return of(introspect::Level::core, index(heap::class_for(720))) + of(introspect::Level::large, 0);
  };
  constexpr std::uint64_t pairs = 20'000;
  std::uint64_t counted = 0;
  for (const std::uint64_t period : {4096UL, 0UL, 100'000UL, 4096UL, 0UL}) {
    start(period);
    const std::uint64_t before = allocations();
    for (std::uint64_t i = 0; i < pairs; ++i) terrace_free(terrace_malloc(720));
    counted += allocations() - before;
  }
  // A thread that is preempted at the wrong moment counts once more.
  EXPECT_NEAR(static_cast<double>(counted), 5.0 * pairs, 100);
}

// A thread that was moved may overwrite a count, which then never comes to 0.
TEST_F(Sampling, goes_on_after_a_count_has_missed_its_end) {
  constexpr std::size_t size = 100;
  const std::uint64_t period = 48 * weighed(size);
  start(period);
  cpu_set_t all, here;
  ASSERT_EQ(sched_getaffinity(0, sizeof all, &all), 0);
  CPU_ZERO(&here);
  CPU_SET(sched_getcpu(), &here);
  ASSERT_EQ(sched_setaffinity(0, sizeof here, &here), 0);
  heap::CoreLevel& core = heap::heap.core();
  level::Slot& slot = *core.current();
  core.of_class(slot, core.own_word(slot, heap::class_for(size))).popped = 5;
  std::vector<void*> blocks(20'000);  // the next miss sees it
  for (void*& p : blocks) p = terrace_malloc(size);
  for (void* const p : blocks) terrace_free(p);
  const std::uint64_t before = taken();
  constexpr int pairs = 100'000;
  for (int i = 0; i < pairs; ++i) terrace_free(terrace_malloc(size));
  expect_samples(static_cast<double>(taken() - before), pairs, probability(weighed(size), period), "pairs");
  ASSERT_EQ(sched_setaffinity(0, sizeof all, &all), 0);
}

TEST_F(Sampling, samples_a_second_time_only_what_is_started_again) {
  start(1);
  void* const p = terrace_malloc(100);
  profiler.set_period(0);
  const std::uint64_t before = taken();
  EXPECT_EQ(before - dropped(), 1U);
  for (int i = 0; i < 10'000; ++i) terrace_free(terrace_malloc(100));
  EXPECT_EQ(taken(), before);
  terrace_free(p);
  EXPECT_EQ(taken(), dropped());
}

}  // namespace
}  // namespace terrace
