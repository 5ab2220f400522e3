// SPDX-License-Identifier: MIT OR Apache-2.0
// Classes of object caches on the levels of blocks: alignment, prepared blocks, many classes, threads, fork, removal.
#include "heap/heap.h"
#include "terrace/malloc.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <gtest/gtest.h>
#include <memory>
#include <random>
#include <set>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace terrace::heap {
namespace {

constexpr std::uint64_t prepared_mark = 0x70726570617265;

// A cache as somebody above would make one: what it prepares it marks, and it counts.
struct Cache {
  explicit Cache(std::size_t size, std::size_t align = 8, bool prepared = true)
      : h(heap.levels().make_objects(
            {.size = size, .align = align, .prepared = prepared, .undo = prepared ? undo : nullptr, .owner = this})) {}
  static void undo(void* owner, void* block) {
    auto& cache = *static_cast<Cache*>(owner);
    std::uint64_t mark;
    std::memcpy(&mark, block, sizeof mark);
    if (mark != prepared_mark) cache.wrong.fetch_add(1);
    std::memset(block, 0, sizeof mark);
    cache.undone.fetch_add(1);
  }
  void* allocate() {
    bool raw = false;
    void* const p = heap.levels().allocate_object(h, raw);
    if (p == nullptr) return nullptr;
    if (raw) {
      std::memcpy(p, &prepared_mark, sizeof prepared_mark);
      made.fetch_add(1);
    } else {
      std::uint64_t mark;
      std::memcpy(&mark, p, sizeof mark);
      if (mark != prepared_mark) wrong.fetch_add(1);
    }
    return p;
  }
  void free(void* p) const { heap.levels().free_object(p, h); }
  bool remove() { return heap.remove_objects(h); }

  HomeClass h;
  std::atomic<std::uint64_t> made{0}, undone{0}, wrong{0};
};

class ObjectsTest : public testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(heap.ready()); }
  void TearDown() override { EXPECT_STREQ(heap.check_invariants(), nullptr); }
};

TEST_F(ObjectsTest, blocks_of_any_size_and_alignment_are_apart_and_aligned) {
  for (const std::size_t size :
       {1UL, 8UL, 9UL, 24UL, 40UL, 64UL, 100UL, 128UL, 1000UL, 1024UL, 4096UL, 5000UL, 65536UL, 262144UL}) {
    for (const std::size_t align : {8UL, 16UL, 64UL, 512UL, 4096UL, 65536UL}) {
      if (round_up(size, align) > ObjectRule::largest) continue;
      Cache cache(size, align, false);
      ASSERT_TRUE(is_object(cache.h));
      const std::size_t n = std::min<std::size_t>(300, 4 * mib / size);
      std::vector<std::byte*> blocks;
      for (std::size_t i = 0; i < n; ++i) {
        bool raw = false;
        auto* const p = static_cast<std::byte*>(heap.levels().allocate_object(cache.h, raw));
        ASSERT_NE(p, nullptr);
        ASSERT_EQ(address_of(p) % align, 0U) << size << " " << align;
        ASSERT_TRUE(heap.slabs().is_object_of(cache.h, p));
        std::memset(p, 0x5a, size);
        blocks.push_back(p);
      }
      std::ranges::sort(blocks);
      for (std::size_t i = 1; i < n; ++i) ASSERT_GE(blocks[i] - blocks[i - 1], static_cast<std::ptrdiff_t>(size));
      for (std::byte* p : blocks) cache.free(p);
      ASSERT_STREQ(heap.check_invariants(), nullptr);
      EXPECT_TRUE(cache.remove()) << size << " " << align;
    }
  }
}

TEST_F(ObjectsTest, a_block_is_made_once_and_stays_prepared_until_it_goes_back) {
  Cache cache(200);
  std::vector<void*> blocks(1000);
  for (int round = 0; round < 5; ++round) {
    for (void*& p : blocks) ASSERT_NE(p = cache.allocate(), nullptr);
    for (void* p : blocks) cache.free(p);
  }
  EXPECT_EQ(cache.wrong, 0U);
  EXPECT_GE(cache.made, blocks.size());
  EXPECT_LT(cache.made, 5 * blocks.size()) << "nothing stays prepared";
  EXPECT_TRUE(cache.remove());
  EXPECT_EQ(cache.undone, cache.made);
  EXPECT_EQ(cache.wrong, 0U);
}

TEST_F(ObjectsTest, nobody_is_prepared_in_advance) {
  Cache cache(64);
  void* const p = cache.allocate();
  EXPECT_EQ(cache.made, 1U);
  void* const q = cache.allocate();
  EXPECT_EQ(cache.made, 2U);
  cache.free(p);
  EXPECT_EQ(cache.allocate(), p);
  EXPECT_EQ(cache.made, 2U);
  cache.free(p);
  cache.free(q);
  EXPECT_TRUE(cache.remove());
}

TEST_F(ObjectsTest, malloc_s_maintenance_calls_no_owner) {
  Cache cache(200);
  std::vector<void*> blocks(2000);
  for (void*& p : blocks) p = cache.allocate();
  for (void* p : blocks) cache.free(p);
  const std::uint64_t undone = cache.undone;
  terrace_malloc_trim(0);
  EXPECT_EQ(cache.undone, undone);
  // Two looks: what has not changed in between has waited. A full stack of the depot leaves one by one.
  for (int i = 0; i < 100; ++i) heap.drain_objects(cache.h);
  EXPECT_EQ(cache.undone, cache.made);
  EXPECT_TRUE(cache.remove());
}

TEST_F(ObjectsTest, what_waits_of_prepared_blocks_ages) {
  Cache cache(200);
  std::vector<void*> blocks(2000);
  for (void*& p : blocks) p = cache.allocate();
  for (void* p : blocks) cache.free(p);
  for (int i = 0; i < 100; ++i) heap.age_prepared_objects();
  EXPECT_EQ(cache.undone, cache.made);
  EXPECT_TRUE(cache.remove());
}

TEST_F(ObjectsTest, plain_blocks_that_wait_are_drained_with_malloc_s) {
  Cache cache(200, 8, false);
  std::vector<void*> blocks(2000);
  bool raw = false;
  for (void*& p : blocks) p = heap.levels().allocate_object(cache.h, raw);
  for (void* p : blocks) cache.free(p);
  terrace_malloc_trim(0);
  EXPECT_EQ(heap.slabs().bytes_of_slabs(cache.h), 0U);
  EXPECT_TRUE(cache.remove());
}

TEST_F(ObjectsTest, a_class_with_blocks_in_use_is_not_removed) {
  Cache cache(48);
  void* const p = cache.allocate();
  EXPECT_FALSE(cache.remove());
  cache.free(p);
  EXPECT_TRUE(cache.remove());
}

TEST_F(ObjectsTest, numbers_are_used_again) {
  std::set<std::size_t> numbers;
  for (int i = 0; i < 1000; ++i) {
    Cache cache(48 + 8 * (i % 4));
    numbers.insert(index(cache.h));
    cache.free(cache.allocate());
    ASSERT_TRUE(cache.remove());
  }
  EXPECT_LE(numbers.size(), 4U);
}

TEST_F(ObjectsTest, thousands_of_classes) {
  std::vector<std::unique_ptr<Cache>> caches;
  for (std::size_t i = 0; i < 5000; ++i) caches.push_back(std::make_unique<Cache>(16 + i % 500, 8, i % 2 == 0));
  std::vector<void*> blocks;
  for (auto& c : caches) {
    ASSERT_TRUE(is_object(c->h));
    blocks.push_back(c->allocate());
    ASSERT_NE(blocks.back(), nullptr);
  }
  EXPECT_STREQ(heap.check_invariants(), nullptr);
  for (std::size_t i = 0; i < caches.size(); ++i) caches[i]->free(blocks[i]);
  for (auto& c : caches) EXPECT_TRUE(c->remove());
}

TEST_F(ObjectsTest, free_of_malloc_refuses_an_object) {
  Cache cache(48);
  void* const p = cache.allocate();
  EXPECT_DEATH(terrace_free(p), "free");
  cache.free(p);
  EXPECT_TRUE(cache.remove());
}

TEST_F(ObjectsTest, a_block_that_is_freed_twice_is_told) {
  Cache cache(48);
  void* const p = cache.allocate();
  EXPECT_DEATH(
      {
        cache.free(p);
        cache.free(p);
      },
      "twice|double");
  cache.free(p);
  EXPECT_TRUE(cache.remove());
}

// Each thread passes half of its blocks on to the next.
TEST_F(ObjectsTest, threads_get_each_block_once) {
  constexpr unsigned threads = 4, rounds = 2000;
  Cache cache(40);
  std::atomic<void*> passed[threads] = {};
  std::atomic<bool> shared{false};
  std::vector<std::thread> all;
  for (unsigned t = 0; t < threads; ++t) {
    all.emplace_back([&, t] {
      std::mt19937 random(t);
      std::vector<std::uint64_t*> mine;
      for (unsigned i = 0; i < rounds; ++i) {
        for (unsigned n = random() % 64; n != 0; --n) {
          auto* const p = static_cast<std::uint64_t*>(cache.allocate());
          p[1] = t + 1;
          mine.push_back(p);
        }
        std::ranges::shuffle(mine, random);
        while (mine.size() > 100) {
          if (mine.back()[1] != t + 1) shared = true;
          if (random() % 2 == 0) {
            cache.free(mine.back());
          } else if (void* const other = passed[(t + 1) % threads].exchange(mine.back())) {
            cache.free(other);
          }
          mine.pop_back();
        }
      }
      for (std::uint64_t* p : mine) cache.free(p);
    });
  }
  for (std::thread& t : all) t.join();
  for (auto& p : passed) {
    if (void* const block = p.load()) cache.free(block);
  }
  EXPECT_FALSE(shared);
  EXPECT_EQ(cache.wrong, 0U);
  EXPECT_TRUE(cache.remove());
  EXPECT_EQ(cache.undone, cache.made);
}

TEST_F(ObjectsTest, a_forked_child_goes_on) {
  Cache cache(72);
  std::atomic<bool> done{false};
  std::thread other([&] {
    while (!done) {
      void* blocks[50];
      for (void*& p : blocks) p = cache.allocate();
      for (void* p : blocks) cache.free(p);
    }
  });
  for (int i = 0; i < 50; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      Cache own(72);
      for (int n = 0; n < 500; ++n) {
        void* const p = cache.allocate();
        void* const q = own.allocate();
        if (p == nullptr || q == nullptr) _exit(2);
        cache.free(p);
        own.free(q);
      }
      _exit(own.remove() && own.wrong == 0 ? 0 : 1);
    }
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
  done = true;
  other.join();
  EXPECT_TRUE(cache.remove());
}

}  // namespace
}  // namespace terrace::heap
