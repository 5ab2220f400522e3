// SPDX-License-Identifier: MIT OR Apache-2.0
// The proof: known bytes by sites of 50 sizes, with pairs, churn, realloc, threads, and frees by others. 200 runs, on each rung
// (TERRACE_RUNG):
//   TERRACE_PROOF_RUNS=200 build/release/tests/unit/unit_fifty_sites_test
#include "sampling.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <utility>
#include <vector>

namespace terrace {
namespace {

class FiftySites : public Sampling {
 protected:
  static constexpr unsigned threads = 4, count = 50;
  static constexpr std::uint64_t period = 4096;
  static constexpr std::size_t bytes_of_site = 1 << 20;

  FiftySites() : sites_(count), of_others_(count) {
    for (unsigned i = 0; i < count; ++i) sites_[i].size = static_cast<std::size_t>(std::lround(16 * std::exp2(18.0 * i / 49)));
  }

  /// One more block of a site, in one of five ways of allocating.
  void* add(unsigned i) {
    Site& site = sites_[i];
    switch (i % 5) {
      case 0: terrace_free(terrace_malloc(site.size)); break;
      case 1:
        if (!site.blocks.empty()) {
          void*& earlier = site.blocks[site.blocks.size() / 2];
          terrace_free(earlier);
          earlier = terrace_malloc(site.size);
        }
        break;
      case 2: return terrace_realloc(terrace_malloc(site.size / 3 + 1), site.size);
      case 3: of_others_[i].push_back(terrace_malloc(site.size)); break;
      default: return terrace_calloc(1, site.size);
    }
    return terrace_malloc(site.size);
  }

  void allocate() {
    const auto in_threads = [](auto body) {
      std::vector<std::jthread> running;
      for (unsigned t = 0; t < threads; ++t) {
        running.emplace_back([=] {
          for (unsigned i = t; i < count; i += threads) body(i);
        });
      }
    };
    in_threads([this](unsigned i) {
      const std::size_t wanted = std::max<std::size_t>(bytes_of_site / sites_[i].size, 2);
      while (sites_[i].blocks.size() < wanted) sites_[i].blocks.push_back(add(i));
    });
    in_threads([this](unsigned i) {
      for (void* const p : std::exchange(of_others_[(i + 1) % count], {})) terrace_free(p);
    });
  }

  /// How many sites lie within three standard errors.
  unsigned sites_that_hold() {
    std::vector<std::pair<std::uint64_t, unsigned>> site_of;
    for (unsigned i = 0; i < count; ++i) {
      for (void* const p : sites_[i].blocks) site_of.emplace_back(address_of(p), i);
    }
    std::ranges::sort(site_of);
    std::vector<double> estimates(count);
    for (std::uint32_t n = 1; n < profiler.table().used(); ++n) {
      const profile::Sample& s = profiler.table().at(n);
      if (s.state != profile::State::live) continue;
      const auto found = std::ranges::lower_bound(site_of, std::pair(s.address, 0U));
      if (found == site_of.end() || found->first != s.address) {
        ADD_FAILURE() << "a sample of a block that is not live";
        continue;
      }
      estimates[found->second] += static_cast<double>(s.size) / probability(s.weighed, s.period);
    }
    unsigned held = 0;
    double bytes = 0, estimate = 0;
    for (unsigned i = 0; i < count; ++i) {
      double variance = 0;
      const auto size = static_cast<double>(sites_[i].size), whole = size * static_cast<double>(sites_[i].blocks.size());
      for (const void* const p : sites_[i].blocks) {
        const std::size_t usable = terrace_malloc_usable_size(p);
        const double chance = probability(usable <= heap::SizeRule::largest ? usable : sites_[i].size, period);
        variance += size * size * (1 - chance) / chance;
      }
      held += std::abs(estimates[i] - whole) <= 3 * std::sqrt(variance) + 1 ? 1 : 0;
      bytes += whole;
      estimate += estimates[i];
    }
    EXPECT_NEAR(estimate, bytes, bytes / 50);
    return held;
  }

  void free_all() {
    for (Site& site : sites_) {
      for (void* const p : std::exchange(site.blocks, {})) terrace_free(p);
    }
    EXPECT_EQ(taken(), dropped());
  }

 private:
  std::vector<Site> sites_;
  std::vector<std::vector<void*>> of_others_;
};

TEST_F(FiftySites, hold_what_is_estimated) {
  start(period);
  expect_estimates_hold(count, [this] {
    allocate();
    const unsigned held = sites_that_hold();
    free_all();
    return held;
  });
}

}  // namespace
}  // namespace terrace
