// SPDX-License-Identifier: MIT OR Apache-2.0
// The heap profiler samples objects of caches as it samples blocks: known bytes by caches of several kinds, with pairs, churn,
// and frees by others. 200 runs, on each rung (TERRACE_RUNG):
//   TERRACE_PROOF_RUNS=200 build/release/tests/unit/unit_sampled_objects_test
#include "introspect/statistics.h"
#include "sampling.h"
#include "umem.h"
#include "umem/cache.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <deque>
#include <thread>
#include <utility>
#include <vector>

namespace terrace {
namespace {

constexpr std::uint64_t period = 512, constructed = 0x5e7;
constexpr std::size_t bytes_of_site = 1 << 20;

struct CacheSite {
  CacheSite(std::size_t bytes, int flags, bool constructs) : size(bytes) {
    char name[] = "a site";
    cache = umem_cache_create(name, bytes, 0, constructs ? construct : nullptr, constructs ? destruct : nullptr, nullptr, this,
                              nullptr, flags);
    has_constructor = constructs;
  }
  static int construct(void* p, void* site, int) {
    *static_cast<std::uint64_t*>(p) = constructed;
    made(site).fetch_add(1);
    return 0;
  }
  static void destruct(void* p, void* site) {
    EXPECT_EQ(*static_cast<std::uint64_t*>(p), constructed);
    made(site).fetch_sub(1);
  }
  static std::atomic<long>& made(void* site) { return static_cast<CacheSite*>(site)->made_; }
  void* allocate() const {
    void* const p = umem_cache_alloc(cache, UMEM_NOFAIL);
    EXPECT_TRUE(!has_constructor || *static_cast<std::uint64_t*>(p) == constructed);
    return p;
  }
  void free(void* p) const { umem_cache_free(cache, p); }

  std::size_t size;
  umem_cache_t* cache;
  bool has_constructor;
  std::vector<void*> objects, of_others;
  std::atomic<long> made_{0};
};

class SampledObjects : public Sampling {
 protected:
  static constexpr unsigned threads = 3;

  void SetUp() override {
    Sampling::SetUp();
    for (const std::size_t size : {24UL, 56UL, 200UL, 1000UL, 5000UL, 40'000UL, 300'000UL}) sites_.emplace_back(size, 0, false);
    for (const std::size_t size : {40UL, 120UL, 2000UL, 300'000UL}) sites_.emplace_back(size, 0, true);
    sites_.emplace_back(64, UMC_NOMAGAZINE, true);
  }
  void TearDown() override {
    for (CacheSite& site : sites_) {
      umem_cache_destroy(site.cache);
      EXPECT_EQ(site.made_, 0);
    }
    Sampling::TearDown();
  }

  template <class Body>
  void in_threads(Body body) {
    std::vector<std::jthread> running;
    for (unsigned t = 0; t < threads; ++t) {
      running.emplace_back([=, this] {
        for (std::size_t i = t; i < sites_.size(); i += threads) body(i);
      });
    }
  }

  void allocate() {
    in_threads([this](std::size_t i) {
      CacheSite& site = sites_[i];
      for (std::size_t n = std::max<std::size_t>(bytes_of_site / site.size, 4); n != 0; --n) {
        site.objects.push_back(site.allocate());
        site.free(site.allocate());
        void*& earlier = site.objects[site.objects.size() / 2];
        site.free(std::exchange(earlier, nullptr));
        earlier = site.allocate();
        if (n % 4 == 0) site.of_others.push_back(site.allocate());
      }
    });
    in_threads([this](std::size_t i) {
      CacheSite& site = sites_[(i + 1) % sites_.size()];
      for (void* const p : std::exchange(site.of_others, {})) site.free(p);
    });
  }

  /// How many sites lie within three standard errors.
  unsigned sites_that_hold() {
    std::vector<std::pair<std::uint64_t, std::size_t>> site_of;
    for (std::size_t i = 0; i < sites_.size(); ++i) {
      for (void* const p : sites_[i].objects) site_of.emplace_back(address_of(p), i);
    }
    std::ranges::sort(site_of);
    std::vector<double> estimates(sites_.size()), weights(sites_.size());
    for (std::uint32_t n = 1; n < profiler.table().used(); ++n) {
      const profile::Sample& s = profiler.table().at(n);
      if (s.state != profile::State::live) continue;
      const auto found = std::ranges::lower_bound(site_of, std::pair(s.address, std::size_t{0}));
      if (found == site_of.end() || found->first != s.address) continue;  // of the test's own vectors
      EXPECT_EQ(s.size, sites_[found->second].size);
      weights[found->second] = static_cast<double>(s.weighed);
      estimates[found->second] += static_cast<double>(s.size) / probability(s.weighed, s.period);
    }
    unsigned held = 0;
    double bytes = 0, estimate = 0;
    for (std::size_t i = 0; i < sites_.size(); ++i) {
      const auto size = static_cast<double>(sites_[i].size), count = static_cast<double>(sites_[i].objects.size());
      const double chance = probability(static_cast<std::uint64_t>(weights[i]), period);
      const double error = size * std::sqrt(count * (1 - chance) / chance);
      const double one = size / chance;  // where nearly all are sampled, one that is not is many standard errors
      held += std::abs(estimates[i] - size * count) <= 3 * error + one ? 1 : 0;
      EXPECT_NEAR(estimates[i], size * count, sigmas * error + one) << "objects of " << size << " bytes, site " << i;
      bytes += size * count;
      estimate += estimates[i];
    }
    EXPECT_NEAR(estimate, bytes, bytes / 50);
    return held;
  }

  void free_all() {
    for (CacheSite& site : sites_) {
      for (void* const p : std::exchange(site.objects, {})) site.free(p);
    }
  }

  std::deque<CacheSite> sites_;
};

TEST_F(SampledObjects, hold_what_is_estimated) {
  start(period);
  expect_estimates_hold(sites_.size(), [this] {
    allocate();
    const unsigned held = sites_that_hold();
    free_all();
    return held;
  });
}

TEST_F(SampledObjects, are_freed_when_sampling_has_ended) {
  start(1);
  std::vector<std::pair<CacheSite*, void*>> objects;
  for (CacheSite& site : sites_) objects.emplace_back(&site, site.allocate());
  profiler.set_period(0);
  const std::uint64_t before = dropped();
  for (const auto& [site, p] : objects) site->free(p);
  EXPECT_EQ(dropped() - before, sites_.size());
}

TEST_F(SampledObjects, are_refused_by_others) {
  start(1);
  CacheSite site(48, 0, false), other(48, 0, false);
  void* p = site.allocate();
  EXPECT_DEATH(other.free(p), "terrace: umem_cache_free.*invalid pointer");
  EXPECT_DEATH(terrace_free(p), "terrace: .*free.*invalid pointer");
  for (const std::size_t size : {40U, 4000U, 300'000U})
    EXPECT_DEATH(p = terrace_realloc(p, size), "terrace: realloc.*invalid pointer");
  site.free(p);
}

TEST_F(SampledObjects, keep_a_cache_that_is_destroyed) {
  start(1);
  CacheSite site(48, 0, true);
  void* const p = site.allocate();
  testing::internal::CaptureStderr();
  umem_cache_destroy(site.cache);
  EXPECT_NE(testing::internal::GetCapturedStderr().find("not empty"), std::string::npos);
  site.free(p);
  EXPECT_EQ(site.made_, 0);
}

}  // namespace
}  // namespace terrace
