// SPDX-License-Identifier: MIT OR Apache-2.0
// Memory by size.
#include "umem.h"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

namespace {

std::uintptr_t at(const void* p) { return reinterpret_cast<std::uintptr_t>(p); }

TEST(UmemAlloc, is_aligned_as_the_manual_says) {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  std::vector<std::size_t> sizes;
  for (std::size_t size = 1; size <= 20000; size += size < 300 ? 1 : 37) sizes.push_back(size);
  for (std::size_t size = 64; size <= 300000; size += 64) sizes.push_back(size);
  for (const std::size_t size : sizes) {
    void* const p = umem_alloc(size, UMEM_DEFAULT);
    ASSERT_NE(p, nullptr);
    const std::size_t align = size % page == 0 ? page : size % 64 == 0 ? 64 : size >= 16 ? 16 : 8;
    EXPECT_EQ(at(p) % align, 0U) << size;
    std::memset(p, 1, size);
    umem_free(p, size);
  }
}

TEST(UmemAlloc, nothing_is_null_and_null_may_be_freed) {
  EXPECT_EQ(umem_alloc(0, UMEM_DEFAULT), nullptr);
  EXPECT_EQ(umem_zalloc(0, UMEM_NOFAIL), nullptr);
  umem_free(nullptr, 0);
  umem_free(nullptr, 64);
  void* const p = umem_alloc(64, UMEM_DEFAULT);  // of a list with null in it this would be null
  EXPECT_NE(p, nullptr);
  umem_free(p, 64);
}

TEST(UmemAlloc, zalloc_is_zeroed) {
  for (const std::size_t size : {1UL, 100UL, 5000UL, 200000UL, 3000000UL}) {
    for (int i = 0; i < 3; ++i) {
      auto* const p = static_cast<unsigned char*>(umem_zalloc(size, UMEM_DEFAULT));
      for (std::size_t n = 0; n < size; ++n) ASSERT_EQ(p[n], 0);
      std::memset(p, 0xff, size);
      umem_free(p, size);
    }
  }
}

// Harmless where nobody looks at it: the heap knows each block by its address. UMEM_DEBUG tells it (messages/aligned_*.c).
TEST(UmemAlloc, aligned_memory_freed_by_umem_free_is_whole_and_comes_back) {
  constexpr std::size_t most = std::size_t{1} << 20, lost_would_be = std::size_t{1} << 30;
  rlimit before{}, limit{};
  getrlimit(RLIMIT_AS, &before);
  limit = before;
  limit.rlim_cur = lost_would_be + (lost_would_be >> 1);
  setrlimit(RLIMIT_AS, &limit);
  std::size_t bytes = 0;
  while (bytes < 8 * lost_would_be) {
    for (std::size_t align = 16; align <= most; align *= 4) {
      for (std::size_t size = 16; size <= most; size = size * 3 / 2 + 8) {
        char* blocks[4];
        for (int i = 0; i < 4; ++i) {
          blocks[i] =
              static_cast<char*>(i % 2 == 0 ? umem_alloc_align(size, align, UMEM_DEFAULT) : umem_alloc(size, UMEM_DEFAULT));
          ASSERT_NE(blocks[i], nullptr) << size << " at " << align << " after " << bytes;
          EXPECT_EQ(at(blocks[i]) % (i % 2 == 0 ? align : 16), 0U);
          blocks[i][0] = blocks[i][size - 1] = static_cast<char>(i);
        }
        for (int i = 0; i < 4; ++i) {
          EXPECT_EQ(blocks[i][0], i);
          EXPECT_EQ(blocks[i][size - 1], i);
          umem_free(blocks[i], size);
        }
        bytes += 2 * size;
      }
    }
  }
  setrlimit(RLIMIT_AS, &before);
}

TEST(UmemAlloc, takes_alignments) {
  for (std::size_t align = 1; align <= 1 << 20; align *= 2) {
    for (const std::size_t size : {1UL, 24UL, 1000UL, 70000UL}) {
      void* const p = umem_alloc_align(size, align, UMEM_DEFAULT);
      ASSERT_NE(p, nullptr);
      EXPECT_EQ(at(p) % std::max<std::size_t>(align, 8), 0U);
      umem_free_align(p, size);
      void* const q = umem_alloc_aligned(size, align, UMEM_NOFAIL);
      EXPECT_EQ(at(q) % align, 0U);
      umem_free_aligned(q, size);
    }
  }
  errno = 0;
  EXPECT_EQ(umem_alloc_align(10, 24, UMEM_DEFAULT), nullptr);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(umem_alloc_align(0, 16, UMEM_DEFAULT), nullptr);
  umem_free_align(nullptr, 0);
}

TEST(UmemAlloc, refuses_with_ENOMEM) {
  errno = 0;
  EXPECT_EQ(umem_alloc(~std::size_t{0} / 2, UMEM_DEFAULT), nullptr);
  EXPECT_EQ(errno, ENOMEM);
}

int asked = 0;

// What a child ends with.
template <class Body>
int status_of(Body body) {
  const pid_t child = fork();
  if (child == 0) {
    body();
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

constexpr std::size_t too_much = ~std::size_t{0} / 2;

TEST(UmemNofail, without_a_callback_ends_with_255) {
  EXPECT_EQ(status_of([] { (void)umem_alloc(too_much, UMEM_NOFAIL); }), 255);
}

TEST(UmemNofail, the_callback_names_the_status) {
  EXPECT_EQ(status_of([] {
              umem_nofail_callback([] { return UMEM_CALLBACK_EXIT(7); });
              (void)umem_alloc(too_much, UMEM_NOFAIL);
            }),
            7);
  EXPECT_EQ(status_of([] {
              umem_nofail_callback([] { return 5; });  // neither
              (void)umem_alloc(too_much, UMEM_NOFAIL);
            }),
            255);
}

TEST(UmemNofail, the_callback_may_ask_for_another_try) {
  EXPECT_EQ(status_of([] {
              umem_nofail_callback([] { return ++asked < 4 ? UMEM_CALLBACK_RETRY : UMEM_CALLBACK_EXIT(asked); });
              (void)umem_alloc(too_much, UMEM_NOFAIL);
            }),
            4);
}

TEST(UmemNofail, failing_at_exit_as_well_aborts) {
  EXPECT_EQ(status_of([] {
              std::atexit([] { (void)umem_alloc(too_much, UMEM_NOFAIL); });
              (void)umem_alloc(too_much, UMEM_NOFAIL);
            }),
            1000 + SIGABRT);
}

TEST(UmemDeath, a_pointer_that_is_not_of_the_library) {
  static long own[8];
  EXPECT_DEATH(umem_free(&own[0], sizeof own), "umem_free\\(\\): invalid pointer");
}

TEST(UmemMalloc, may_be_mixed_with_malloc_of_the_same_process) {
  std::vector<std::pair<void*, void*>> both;
  for (std::size_t size = 1; size < 5000; size += 7) both.emplace_back(std::malloc(size), umem_alloc(size, UMEM_DEFAULT));
  std::size_t size = 1;
  for (auto [p, q] : both) {
    ASSERT_NE(p, q);
    std::free(p);
    umem_free(q, size);
    size += 7;
  }
}

}  // namespace
