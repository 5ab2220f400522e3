// SPDX-License-Identifier: MIT OR Apache-2.0
// Several threads on one arena, and on arenas that import from one: each number belongs to one thread at a time.
#include "arena_fixture.h"

#include <atomic>
#include <memory>
#include <random>
#include <thread>

namespace terrace::vmem {
namespace {

constexpr unsigned threads = 4;
constexpr int steps = 20000;

// Who has each number of an arena of such a size, from `base` on.
class Owners {
 public:
  static constexpr std::uintptr_t base = 1 << 20;
  static constexpr std::size_t bytes = 1 << 16;

  void claim(std::uintptr_t start, std::size_t size, unsigned thread) {
    for (std::size_t i = 0; i < size; ++i) {
      if (owners_[start - base + i].exchange(thread + 1, std::memory_order_relaxed) != 0) clashes_.fetch_add(1);
    }
  }
  void leave(std::uintptr_t start, std::size_t size, unsigned thread) {
    for (std::size_t i = 0; i < size; ++i) {
      if (owners_[start - base + i].exchange(0, std::memory_order_relaxed) != thread + 1) clashes_.fetch_add(1);
    }
  }
  unsigned clashes() const { return clashes_.load(); }

 private:
  std::unique_ptr<std::atomic<unsigned>[]> owners_ { new std::atomic<unsigned>[ bytes ]() };
  std::atomic<unsigned> clashes_{0};
};

void work(vmem_t* vmp, Owners& owners, unsigned thread, std::size_t largest) {
  std::mt19937 random(thread);
  std::vector<Found> mine;
  for (int step = 0; step < steps; ++step) {
    if (mine.size() < 40 && random() % 2 == 0) {
      const std::size_t size = 1 + random() % largest;
      const bool aligned = random() % 4 == 0;
      void* const p =
          aligned ? vmem_xalloc(vmp, size, 64, 0, 0, nullptr, nullptr, VM_NOSLEEP) : vmem_alloc(vmp, size, VM_NOSLEEP);
      if (p == nullptr) continue;
      owners.claim(address_of(p), size, thread);
      mine.push_back({address_of(p), size});
    } else if (!mine.empty()) {
      std::swap(mine[random() % mine.size()], mine.back());
      owners.leave(mine.back().start, mine.back().size, thread);
      vmem_free(vmp, at(mine.back().start), mine.back().size);
      mine.pop_back();
    }
  }
  for (const Found& f : mine) {
    owners.leave(f.start, f.size, thread);
    vmem_free(vmp, at(f.start), f.size);
  }
}

void run(const std::vector<vmem_t*>& by_thread, Owners& owners, std::size_t largest) {
  std::vector<std::thread> all;
  for (unsigned t = 0; t < threads; ++t) all.emplace_back([&, t] { work(by_thread[t], owners, t, largest); });
  for (std::thread& t : all) t.join();
  EXPECT_EQ(owners.clashes(), 0U);
}

TEST(Threads, share_an_arena) {
  for (const std::size_t qcache_max : {0, 64}) {
    Owners owners;
    const OwnArena a(Owners::base, Owners::bytes, 1, qcache_max);
    run({a, a, a, a}, owners, 300);
    EXPECT_STREQ(a.arena().check_invariants(), nullptr);
    EXPECT_EQ(vmem_size(a, VMEM_ALLOC), a.arena().statistics().cached);
    EXPECT_EQ(a.arena().statistics().allocations, a.arena().statistics().frees);
  }
}

TEST(Threads, share_an_arena_that_is_too_small) {
  Owners owners;
  const OwnArena a(Owners::base, 4096, 16, 64);
  run({a, a, a, a}, owners, 300);
  EXPECT_GT(a.arena().statistics().failures, 0U);
}

TEST(Threads, import_from_one_arena) {
  Owners owners;
  const OwnArena source(Owners::base, Owners::bytes, 512, 1024);
  const OwnArena one(vmem_create("one", nullptr, 0, 16, vmem_alloc, vmem_free, source, 128, VM_NOSLEEP)),
      two(vmem_create("two", nullptr, 0, 32, vmem_alloc, vmem_free, source, 0, VM_NOSLEEP));
  run({one, one, two, two}, owners, 1000);
  one.arena().empty_caches();
  EXPECT_EQ(vmem_size(one, VMEM_ALLOC | VMEM_FREE), 0U);
  EXPECT_EQ(vmem_size(two, VMEM_ALLOC | VMEM_FREE), 0U);
  EXPECT_EQ(vmem_size(source, VMEM_ALLOC), source.arena().statistics().cached);
}

TEST(Threads, make_and_destroy_arenas) {
  const OwnArena source(Owners::base, Owners::bytes, 16);
  std::vector<std::thread> all;
  for (unsigned t = 0; t < threads; ++t) {
    all.emplace_back([&] {
      for (int i = 0; i < 300; ++i) {
        const OwnArena a(vmem_create("short", nullptr, 0, 1, vmem_alloc, vmem_free, source, 16, VM_NOSLEEP));
        std::vector<std::uintptr_t> pieces;
        for (int n = 0; n < 50; ++n) pieces.push_back(a.alloc(5));
        for (const std::uintptr_t p : pieces) {
          if (p != 0) a.free(p, 5);
        }
      }
    });
  }
  for (std::thread& t : all) t.join();
  EXPECT_EQ(vmem_size(source, VMEM_ALLOC), 0U);
}

TEST(Threads, find_one_heap_arena_and_use_its_memory) {
  std::vector<std::thread> all;
  std::atomic<vmem_t*> found[threads] = {};
  for (unsigned t = 0; t < threads; ++t) {
    all.emplace_back([&found, t] {
      vmem_t* const heap = vmem_heap_arena(nullptr, nullptr);
      found[t] = heap;
      for (int i = 0; i < 500; ++i) {
        const std::size_t size = 1 + static_cast<std::size_t>(i * 997 % 50000);
        auto* const p = static_cast<unsigned char*>(vmem_alloc(heap, size, VM_NOSLEEP));
        if (p == nullptr) continue;
        p[0] = p[size - 1] = static_cast<unsigned char>(t);
        EXPECT_EQ(p[0], t);
        vmem_free(heap, p, size);
      }
    });
  }
  for (std::thread& t : all) t.join();
  for (const auto& heap : found) EXPECT_EQ(heap, found[0]);
  EXPECT_EQ(vmem_size(found[0], VMEM_ALLOC | VMEM_FREE), 0U);
}

}  // namespace
}  // namespace terrace::vmem
