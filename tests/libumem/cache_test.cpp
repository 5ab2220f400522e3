// SPDX-License-Identifier: MIT OR Apache-2.0
// Object caches: what the manual promises, a test each.
#include "object.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <mutex>
#include <set>
#include <string>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace {

char name[] = "a cache";
umem_cache_t* make(Counts& c, std::size_t size = sizeof(Object), std::size_t align = 0, int flags = 0) {
  return umem_cache_create(name, size, align, construct, destruct, reclaim, &c, nullptr, flags);
}

TEST(UmemCache, an_object_is_constructed_once_and_stays_so) {
  Counts c;
  umem_cache_t* const cache = make(c);
  auto* p = static_cast<Object*>(umem_cache_alloc(cache, UMEM_NOFAIL));
  EXPECT_EQ(p->mark, mark);
  EXPECT_EQ(c.made, 1);
  EXPECT_EQ(c.flags, UMEM_DEFAULT);
  for (int i = 0; i < 1000; ++i) {
    umem_cache_free(cache, p);
    p = static_cast<Object*>(umem_cache_alloc(cache, UMEM_DEFAULT));
    ASSERT_EQ(p->mark, mark);
  }
  // A sampled object is constructed anew, and destructed when it is freed: at a period of 4 KiB one in 256.
  const int anew = std::getenv("TERRACE_PROFILE") != nullptr ? 40 : 0;
  EXPECT_LE(c.made, 4 + anew) << "one for each cpu that the thread was on";
  umem_cache_free(cache, p);
  umem_cache_destroy(cache);
  EXPECT_EQ(c.undone, c.made);
  EXPECT_EQ(c.wrong, 0);
}

TEST(UmemCache, a_constructor_that_fails_fails_the_allocation) {
  Counts c;
  umem_cache_t* const cache = make(c);
  c.refuses = true;
  errno = 0;
  EXPECT_EQ(umem_cache_alloc(cache, UMEM_DEFAULT), nullptr);
  EXPECT_EQ(errno, ENOMEM);
  c.refuses = false;
  void* const p = umem_cache_alloc(cache, UMEM_DEFAULT);
  EXPECT_NE(p, nullptr);
  umem_cache_free(cache, p);
  umem_cache_destroy(cache);
  EXPECT_EQ(c.made, 1);
  EXPECT_EQ(c.undone, 1);
}

Counts* retried = nullptr;
TEST(UmemCache, with_NOFAIL_a_failing_constructor_asks_the_callback) {
  Counts c;
  retried = &c;
  umem_cache_t* const cache = make(c);
  c.refuses = true;
  umem_nofail_callback([] {
    retried->refuses = false;
    return UMEM_CALLBACK_RETRY;
  });
  void* const p = umem_cache_alloc(cache, UMEM_NOFAIL);
  EXPECT_NE(p, nullptr);
  umem_nofail_callback(nullptr);
  umem_cache_free(cache, p);
  umem_cache_destroy(cache);
}

TEST(UmemCache, objects_are_aligned_and_apart) {
  for (const std::size_t align : {0UL, 1UL, 8UL, 16UL, 64UL, 256UL, 4096UL}) {
    for (const std::size_t size : {1UL, 8UL, 9UL, 15UL, 24UL, 40UL, 200UL, 4096UL, 5000UL, 100000UL, 400000UL, 3000000UL}) {
      umem_cache_t* const cache = umem_cache_create(name, size, align, nullptr, nullptr, nullptr, nullptr, nullptr, 0);
      ASSERT_NE(cache, nullptr);
      const std::size_t expected = align != 0 ? std::max<std::size_t>(align, 8) : size > 8 ? 16 : 8;
      std::vector<std::uintptr_t> all;
      for (int i = 0; i < 40; ++i) {
        void* const p = umem_cache_alloc(cache, UMEM_DEFAULT);
        ASSERT_NE(p, nullptr);
        all.push_back(reinterpret_cast<std::uintptr_t>(p));
        EXPECT_EQ(all.back() % expected, 0U) << size << " " << align;
        std::memset(p, 0x11, size);
      }
      std::ranges::sort(all);
      for (std::size_t i = 1; i < all.size(); ++i) EXPECT_GE(all[i] - all[i - 1], size);
      for (const std::uintptr_t p : all) umem_cache_free(cache, reinterpret_cast<void*>(p));
      umem_cache_destroy(cache);
    }
  }
}

TEST(UmemCache, arguments_that_make_no_sense_are_refused) {
  const auto refused = [](char* n, std::size_t size, std::size_t align, int flags) {
    errno = 0;
    return umem_cache_create(n, size, align, nullptr, nullptr, nullptr, nullptr, nullptr, flags) == nullptr ? errno : 0;
  };
  EXPECT_EQ(refused(nullptr, 16, 0, 0), EINVAL);
  EXPECT_EQ(refused(name, 0, 0, 0), EINVAL);
  EXPECT_EQ(refused(name, 16, 24, 0), EINVAL);
  EXPECT_EQ(refused(name, 16, 8192, 0), EINVAL);
  EXPECT_EQ(refused(name, 16, 0, UMC_NOHASH | UMC_NOTOUCH), EINVAL);
  EXPECT_EQ(refused(name, 5000, 0, UMC_NOHASH), EINVAL);
  EXPECT_EQ(refused(name, ~std::size_t{0} - 10, 0, 0), ENOMEM);
}

TEST(UmemCache, without_magazines_each_allocation_constructs) {
  Counts c;
  umem_cache_t* const cache = make(c, sizeof(Object), 0, UMC_NOMAGAZINE);
  for (int i = 0; i < 100; ++i) umem_cache_free(cache, umem_cache_alloc(cache, UMEM_DEFAULT));
  EXPECT_EQ(c.made, 100);
  EXPECT_EQ(c.undone, 100);
  umem_cache_destroy(cache);
}

constexpr std::size_t large = 270'000;  // no class has blocks as long

// That they stay so in a process that has just begun: options/large_objects.c.
TEST(UmemCache, large_objects_are_constructed_whether_they_waited_or_not) {
  Counts c;
  umem_cache_t* const cache = make(c, large);
  for (int i = 0; i < 100; ++i) {
    auto* const p = static_cast<Object*>(umem_cache_alloc(cache, UMEM_DEFAULT));
    ASSERT_EQ(p->mark, mark);
    std::memset(p + 1, i, large - sizeof *p);
    umem_cache_free(cache, p);
  }
  umem_cache_destroy(cache);
  EXPECT_EQ(c.undone, c.made);
  EXPECT_EQ(c.wrong, 0);
}

TEST(UmemCache, larger_objects_wait_only_while_little_does) {
  Counts c;
  constexpr std::size_t size = 1 << 20, most = 64;
  umem_cache_t* const cache = make(c, size);
  void* all[most];
  for (void*& p : all) p = umem_cache_alloc(cache, UMEM_DEFAULT);
  for (void* p : all) umem_cache_free(cache, p);
  EXPECT_GT(c.undone, 0);
  umem_cache_destroy(cache);
  EXPECT_EQ(c.made, static_cast<int>(most));
  EXPECT_EQ(c.undone, c.made);
  EXPECT_EQ(c.wrong, 0);
}

std::string of_stderr(void (*body)()) {
  int ends[2];
  if (pipe(ends) != 0) return "no pipe";
  const pid_t child = fork();
  if (child == 0) {
    dup2(ends[1], 2);
    close(ends[0]);
    body();
    _exit(0);
  }
  close(ends[1]);
  std::string text(4096, '\0');
  std::size_t n = 0;
  for (ssize_t got = 1; got > 0 && n < text.size(); n += static_cast<std::size_t>(got))
    got = read(ends[0], &text[n], text.size() - n);
  close(ends[0]);
  waitpid(child, nullptr, 0);
  text.resize(std::min(n, text.size()));
  return text;
}

TEST(UmemCache, destroying_one_in_use_says_so_and_leaves_its_objects) {
  const std::string text = of_stderr([] {
    Counts c;
    umem_cache_t* const cache = make(c);
    auto* const p = static_cast<Object*>(umem_cache_alloc(cache, UMEM_DEFAULT));
    umem_cache_destroy(cache);
    p->value = 1;
    if (p->mark != mark) abort();
  });
  EXPECT_NE(text.find("umem_cache_destroy: 'a cache' (0x"), std::string::npos) << text;
  EXPECT_NE(text.find("not empty\n"), std::string::npos) << text;
}

TEST(UmemCache, names_are_kept_in_31_bytes_and_all_can_be_asked) {
  static std::set<umem_cache_t*> seen;
  seen.clear();
  char long_name[] = "a name of far more than thirty-one bytes, and so on";
  umem_cache_t* const a = umem_cache_create(long_name, 24, 0, nullptr, nullptr, nullptr, nullptr, nullptr, 0);
  umem_cache_t* const b = umem_cache_create(name, 24, 0, nullptr, nullptr, nullptr, nullptr, nullptr, 0);
  umem_cache_applyall([](umem_cache_t* cache) { seen.insert(cache); });
  EXPECT_TRUE(seen.contains(a) && seen.contains(b));
  umem_cache_destroy(a);
  umem_cache_destroy(b);
  seen.clear();
  umem_cache_applyall([](umem_cache_t* cache) { seen.insert(cache); });
  EXPECT_FALSE(seen.contains(a) || seen.contains(b));
}

[[noreturn]] void reap() {
  Counts c;
  umem_cache_t* const cache = make(c);
  std::vector<void*> all(500);
  for (void*& p : all) p = umem_cache_alloc(cache, UMEM_DEFAULT);
  for (void* p : all) umem_cache_free(cache, p);
  umem_reap();
  const bool reclaimed = c.reclaimed == 1, some = c.undone > 0;
  umem_reap();  // too early
  std::exit(reclaimed && some && c.reclaimed == 1 && c.wrong == 0 ? 0 : 1);
}

// In a process that never had threads: elsewhere a thread of its own does it, some time.
TEST(UmemCacheDeath, reaping_asks_for_memory_and_destructs_what_waits) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(reap(), testing::ExitedWithCode(0), "");
}

TEST(UmemCache, reaping_in_a_process_of_several_threads_waits_for_no_lock_of_the_program) {
  const pid_t child = fork();
  if (child == 0) {
    static std::mutex mutex;
    static std::atomic<int> reclaimed{0};
    std::atomic<bool> done{false};
    std::thread other([&] {
      while (!done) std::this_thread::yield();
    });
    umem_cache_t* const cache = umem_cache_create(
        name, 40, 0, nullptr, nullptr,
        [](void*) {
          const std::lock_guard guard(mutex);
          ++reclaimed;
        },
        nullptr, nullptr, 0);
    {
      const std::lock_guard guard(mutex);
      umem_reap();
    }
    for (int i = 0; i < 5000 && reclaimed == 0; ++i) usleep(1000);
    umem_cache_destroy(cache);
    done = true;
    other.join();
    _exit(reclaimed == 1 ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

TEST(UmemCacheDeath, what_is_no_object_is_refused) {
  Counts c;
  umem_cache_t* const cache = make(c);
  static long own[8];
  EXPECT_DEATH(umem_cache_free(cache, &own[0]), "umem_cache_free");
  void* const block = umem_alloc(sizeof(Object), UMEM_DEFAULT);
  EXPECT_DEATH(umem_cache_free(cache, block), "umem_cache_free");
  umem_free(block, sizeof(Object));
  void* const p = umem_cache_alloc(cache, UMEM_DEFAULT);
  EXPECT_DEATH(umem_free(p, sizeof(Object)), "umem_free|free");
  umem_cache_free(cache, nullptr);
  umem_cache_free(cache, p);
  umem_cache_destroy(cache);
}

TEST(UmemCacheDeath, what_is_no_large_object_is_refused) {
  Counts c;
  umem_cache_t* const cache = make(c, large);
  auto* const p = static_cast<char*>(umem_cache_alloc(cache, UMEM_DEFAULT));
  constexpr auto message = "umem_cache_free\\(\\): invalid pointer";
  EXPECT_DEATH(umem_cache_free(cache, p + 4096), message);
  EXPECT_DEATH(umem_cache_free(cache, std::begin(name)), message);
  void* const small = umem_alloc(100, UMEM_DEFAULT);
  EXPECT_DEATH(umem_cache_free(cache, small), message);
  umem_free(small, 100);
  umem_cache_free(cache, p);
  EXPECT_DEATH(umem_cache_free(cache, p), message);
  umem_cache_destroy(cache);
}

TEST(UmemCache, threads_share_one) {
  Counts c;
  umem_cache_t* const cache = make(c);
  std::atomic<bool> shared{false};
  std::vector<std::thread> threads;
  for (std::uint64_t t = 1; t <= 4; ++t) {
    threads.emplace_back([&, t] {
      std::vector<Object*> mine;
      for (int i = 0; i < 20000; ++i) {
        auto* const p = static_cast<Object*>(umem_cache_alloc(cache, UMEM_NOFAIL));
        if (p->mark != mark) ++c.wrong;
        p->value = t;
        mine.push_back(p);
        if (mine.size() == 200) {
          for (Object* q : mine) {
            if (q->value != t) shared = true;
            umem_cache_free(cache, q);
          }
          mine.clear();
        }
      }
      for (Object* q : mine) umem_cache_free(cache, q);
    });
  }
  for (std::thread& t : threads) t.join();
  EXPECT_FALSE(shared);
  EXPECT_EQ(c.wrong, 0);
  umem_cache_destroy(cache);
  EXPECT_EQ(c.undone, c.made);
}

// Resident memory of the process.
std::size_t resident() {
  char text[128] = {};
  const int f = open("/proc/self/statm", O_RDONLY);
  const ssize_t n = read(f, text, sizeof text - 1);
  close(f);
  unsigned long size = 0, pages = 0;
  return n > 0 && std::sscanf(text, "%lu %lu", &size, &pages) == 2 ? pages * 4096 : 0;
}

// Prints what it takes, and ends the process.
[[noreturn]] void create_thousands() {
  std::vector<umem_cache_t*> caches(5000);
  const std::size_t before = resident();
  for (std::size_t i = 0; i < caches.size(); ++i) {
    caches[i] = umem_cache_create(name, 16 + i % 1000, 0, construct, destruct, nullptr, nullptr, nullptr, 0);
    if (caches[i] == nullptr) std::exit(2);
  }
  const std::size_t each = (resident() - before) / caches.size();
  std::fprintf(stderr, "%zu bytes each\n", each);
  for (umem_cache_t* c : caches) umem_cache_destroy(c);
  std::exit(each < 2048 ? 0 : 1);
}

// In a process of its own: of memory that earlier tests have used some is given back meanwhile.
TEST(UmemCacheDeath, thousands_cost_little_until_they_are_used) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(create_thousands(), testing::ExitedWithCode(0), "bytes each");
}

TEST(UmemCache, the_child_of_a_fork_has_them) {
  Counts c;
  umem_cache_t* const cache = make(c);
  std::atomic<bool> done{false};
  std::thread other([&] {
    while (!done) {
      Counts own;
      umem_cache_t* const another = make(own);
      umem_cache_free(another, umem_cache_alloc(another, UMEM_DEFAULT));
      umem_cache_destroy(another);
      umem_cache_free(cache, umem_cache_alloc(cache, UMEM_DEFAULT));
    }
  });
  for (int i = 0; i < 30; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      Counts own;
      umem_cache_t* const another = make(own);
      for (int n = 0; n < 100; ++n) {
        umem_cache_free(another, umem_cache_alloc(another, UMEM_DEFAULT));
        umem_cache_free(cache, umem_cache_alloc(cache, UMEM_DEFAULT));
      }
      umem_cache_destroy(another);
      _exit(own.made == own.undone && own.wrong == 0 ? 0 : 1);
    }
    int status = 0;
    waitpid(child, &status, 0);
    ASSERT_EQ(status, 0);
  }
  done = true;
  other.join();
  umem_cache_destroy(cache);
}

}  // namespace
