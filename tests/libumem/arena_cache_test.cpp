// SPDX-License-Identifier: MIT OR Apache-2.0
// Object caches with an arena of their own.
#include "object.h"
#include "sys/vmem.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <gtest/gtest.h>
#include <sched.h>
#include <set>
#include <thread>
#include <vector>

namespace {

char name[] = "of an arena";

// An arena over memory of the test's own, with a cache of 512 objects at most.
class UmemCacheOfArena : public testing::Test {
 protected:
  static constexpr std::size_t bytes = 16 * 4096, most = bytes / 128;

  void SetUp() override {
    ASSERT_NE(arena, nullptr);
    ASSERT_NE(cache, nullptr);
  }
  void TearDown() override {
    EXPECT_EQ(c.undone, c.made);
    vmem_destroy(arena);
  }
  umem_cache_t* create(int flags = 0) {
    return umem_cache_create(name, 100, 64, construct, destruct, nullptr, &c, arena, flags);
  }
  void* allocate() { return umem_cache_alloc(cache, UMEM_DEFAULT); }
  void fill() {
    while (void* const p = allocate()) all.push_back(p);
  }
  void free_all() {
    for (void* p : all) umem_cache_free(cache, p);
    all.clear();
  }

  alignas(4096) char memory[bytes];
  vmem_t* const arena = vmem_create("memory", memory, bytes, 64, nullptr, nullptr, nullptr, 0, VM_NOSLEEP);
  Counts c;
  umem_cache_t* cache = create();
  std::vector<void*> all;
};

TEST_F(UmemCacheOfArena, all_of_it_becomes_objects) {
  fill();
  for (void* p : all) {
    const auto* const at = static_cast<char*>(p);
    EXPECT_TRUE(at >= memory && at + 100 <= memory + bytes);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(p) % 64, 0U);
  }
  EXPECT_EQ(all.size(), most);
  free_all();
  umem_cache_destroy(cache);
  EXPECT_EQ(vmem_size(arena, VMEM_ALLOC), 0U);
  EXPECT_EQ(c.made, static_cast<int>(most));
}

TEST_F(UmemCacheOfArena, the_alignment_may_be_less_than_the_quantum) {
  umem_cache_t* const of_words = umem_cache_create(name, 24, 0, nullptr, nullptr, nullptr, nullptr, arena, 0);
  void* const p = umem_cache_alloc(of_words, UMEM_DEFAULT);
  EXPECT_NE(p, nullptr);
  umem_cache_free(of_words, p);
  umem_cache_destroy(of_words);
  umem_cache_destroy(cache);
}

// Identifiers: pieces that are no addresses, and are not touched.
TEST(UmemCacheOfNumbers, each_number_becomes_an_object) {
  constexpr std::uintptr_t first = 100, count = 1000;
  vmem_t* const numbers =
      vmem_create("numbers", reinterpret_cast<void*>(first), count, 1, nullptr, nullptr, nullptr, 0, VM_NOSLEEP);
  umem_cache_t* const ids = umem_cache_create(name, 1, 1, nullptr, nullptr, nullptr, nullptr, numbers, UMC_NOTOUCH);
  for (int round = 0; round < 2; ++round) {  // from the arena, then from magazines
    std::set<std::uintptr_t> all;
    while (void* const id = umem_cache_alloc(ids, UMEM_DEFAULT)) all.insert(reinterpret_cast<std::uintptr_t>(id));
    EXPECT_EQ(all.size(), count);
    EXPECT_EQ(*all.begin(), first);
    for (const std::uintptr_t id : all) umem_cache_free(ids, reinterpret_cast<void*>(id));
  }
  umem_cache_destroy(ids);
  EXPECT_EQ(vmem_size(numbers, VMEM_ALLOC), 0U);
  vmem_destroy(numbers);
}

TEST_F(UmemCacheOfArena, objects_stay_constructed) {
  void* const first = allocate();
  umem_cache_free(cache, first);
  EXPECT_EQ(c.undone, 0);
  void* const again = allocate();
  EXPECT_EQ(again, first);
  EXPECT_EQ(c.made, 1);
  umem_cache_free(cache, again);
  umem_cache_destroy(cache);
  EXPECT_EQ(vmem_size(arena, VMEM_ALLOC), 0U);
}

TEST_F(UmemCacheOfArena, what_waits_is_used_again) {
  fill();
  free_all();
  EXPECT_LT(c.undone, c.made);
  fill();
  EXPECT_EQ(all.size(), most);
  free_all();
  umem_cache_destroy(cache);
}

TEST_F(UmemCacheOfArena, without_magazines_each_goes_back) {
  umem_cache_destroy(cache);
  cache = create(UMC_NOMAGAZINE);
  fill();
  free_all();
  EXPECT_EQ(vmem_size(arena, VMEM_ALLOC), 0U);
  umem_cache_destroy(cache);
}

TEST_F(UmemCacheOfArena, threads_share_it) {
  std::vector<std::thread> threads;
  std::atomic<int> twice = 0;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 20'000; ++i) {
        auto* const p = static_cast<char*>(allocate());
        if (p == nullptr) continue;
        p[64] = static_cast<char>(t);
        if (i % 64 == 0) sched_yield();
        if (p[64] != static_cast<char>(t)) ++twice;
        umem_cache_free(cache, p);
      }
    });
  }
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(twice, 0);
  umem_cache_destroy(cache);
  EXPECT_EQ(vmem_size(arena, VMEM_ALLOC), 0U);
}

TEST_F(UmemCacheOfArena, destroyed_in_use_it_still_takes_its_objects) {
  void* const p = allocate();
  umem_cache_free(cache, allocate());
  umem_cache_destroy(cache);  // says so
  umem_cache_t* const other = create();
  umem_cache_free(cache, p);
  EXPECT_EQ(vmem_size(arena, VMEM_ALLOC), 0U);
  umem_cache_destroy(other);
}

}  // namespace
