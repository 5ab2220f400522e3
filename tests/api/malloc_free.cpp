// SPDX-License-Identifier: MIT OR Apache-2.0
// malloc, free, calloc.
#include "support.h"

#include <set>

namespace api {
namespace {

TEST(malloc_, of_zero_bytes_gives_unique_blocks) {
  std::set<void*> seen;
  for (int i = 0; i < 100; ++i) {
    void* const p = api::malloc(0);
    ASSERT_NE(p, nullptr);
    EXPECT_TRUE(seen.insert(p).second) << p << " was given out twice";
  }
  for (void* p : seen) api::free(p);
}

TEST(malloc_, of_an_impossible_size_fails_with_enomem) {
  for (const std::size_t size : impossible_sizes()) {
    errno = 0;
    void* const p = api::malloc(size);
    EXPECT_EQ(p, nullptr) << size;
    EXPECT_EQ(errno, ENOMEM) << size;
    api::free(p);
  }
}

TEST(malloc_, works_after_impossible_sizes) {
  for (const std::size_t size : impossible_sizes()) api::free(api::malloc(size));
  const Owned p = own(api::malloc(100));
  EXPECT_NE(p, nullptr);
}

TEST(malloc_, preserves_errno_on_success) {
  for (const std::size_t size : boundary_sizes(64 * mib)) {
    errno = untouched_errno;
    const Owned p = own(api::malloc(size));
    ASSERT_NE(p, nullptr) << size;
    ASSERT_EQ(errno, untouched_errno) << size;
  }
}

TEST(malloc_, blocks_that_live_together_do_not_overlap) {
  constexpr std::size_t count = 5000;
  std::vector<Owned> blocks;
  for (std::size_t i = 0; i < count; ++i) {
    blocks.push_back(own(api::malloc(i)));
    ASSERT_NE(blocks.back(), nullptr);
    fill(blocks.back().get(), i, i);
  }
  for (std::size_t i = 0; i < count; i += 2) blocks[i].reset();
  for (std::size_t i = 0; i < count; i += 2) {
    blocks[i] = own(api::malloc(i));
    fill(blocks[i].get(), i, i + 1);
  }
  for (std::size_t i = 0; i < count; ++i) {
    ASSERT_EQ(first_difference(blocks[i].get(), i, i + 1 - i % 2), i) << "block of " << i << " bytes";
  }
}

TEST(malloc_, memory_of_large_blocks_is_used_again) {
  // 64 GiB in turn: only possible if free gives back.
  for (int i = 0; i < 1024; ++i) {
    const Owned p = own(api::malloc(64 * mib));
    ASSERT_NE(p, nullptr) << i;
    fill(p.get(), 64, 1);
  }
}

TEST(free_, of_null_does_nothing) {
  errno = untouched_errno;
  api::free(nullptr);
  EXPECT_EQ(errno, untouched_errno);
}

TEST(free_, preserves_errno) {
  for (const std::size_t size : boundary_sizes(gib)) {
    void* const p = api::malloc(size);
    ASSERT_NE(p, nullptr) << size;
    errno = untouched_errno;
    api::free(p);
    ASSERT_EQ(errno, untouched_errno) << size;
  }
}

TEST(free_, preserves_errno_when_many_blocks_go_back) {
  std::vector<void*> blocks(50000);
  for (std::size_t i = 0; i < blocks.size(); ++i) blocks[i] = api::malloc(i % 4096);
  errno = untouched_errno;
  for (void* p : blocks) api::free(p);
  EXPECT_EQ(errno, untouched_errno);
}

TEST(free_sized_, frees) {
  if (free_sized() == nullptr) GTEST_SKIP() << "this libc has none";
  for (const std::size_t size : boundary_sizes(mib)) {
    void* const p = api::malloc(size);
    ASSERT_NE(p, nullptr);
    errno = untouched_errno;
    free_sized()(p, size);
    ASSERT_EQ(errno, untouched_errno);
  }
  free_sized()(nullptr, 10);
}

TEST(free_aligned_sized_, frees) {
  if (free_aligned_sized() == nullptr) GTEST_SKIP() << "this libc has none";
  for (std::size_t alignment = 16; alignment <= mib; alignment *= 2) {
    void* const p = api::aligned_alloc(alignment, 3 * alignment);
    ASSERT_NE(p, nullptr);
    errno = untouched_errno;
    free_aligned_sized()(p, alignment, 3 * alignment);
    ASSERT_EQ(errno, untouched_errno);
  }
  free_aligned_sized()(nullptr, 16, 10);
}

TEST(free_sized_, memory_is_used_again) {
  if (free_sized() == nullptr) GTEST_SKIP() << "this libc has none";
  for (int i = 0; i < 1024; ++i) {
    void* const p = api::malloc(64 * mib);
    ASSERT_NE(p, nullptr) << i;
    free_sized()(p, 64 * mib);
  }
}

TEST(calloc_, of_zero_elements_gives_unique_blocks) {
  const Owned a = own(api::calloc(0, 8));
  const Owned b = own(api::calloc(8, 0));
  const Owned c = own(api::calloc(0, 0));
  EXPECT_NE(a, nullptr);
  EXPECT_NE(b, nullptr);
  EXPECT_NE(c, nullptr);
  EXPECT_NE(a, b);
  EXPECT_NE(b, c);
}

TEST(calloc_, of_zero_elements_of_the_largest_size_is_no_overflow) {
  const Owned a = own(api::calloc(0, SIZE_MAX));
  const Owned b = own(api::calloc(SIZE_MAX, 0));
  EXPECT_NE(a, nullptr);
  EXPECT_NE(b, nullptr);
}

TEST(calloc_, overflow_fails_with_enomem) {
  const std::size_t root = std::size_t{1} << 32;
  const std::vector<std::pair<std::size_t, std::size_t>> products = {
      {SIZE_MAX, 2},    {2, SIZE_MAX},         {SIZE_MAX, SIZE_MAX},  {root, root},
      {root + 1, root}, {SIZE_MAX / 2 + 1, 2}, {SIZE_MAX / 3 + 1, 3}, {SIZE_MAX / 16 + 2, 16}};
  for (const auto& [count, size] : products) {
    errno = 0;
    void* const p = api::calloc(count, size);
    EXPECT_EQ(p, nullptr) << count << " * " << size;
    EXPECT_EQ(errno, ENOMEM) << count << " * " << size;
    api::free(p);
  }
}

TEST(calloc_, of_an_impossible_size_fails_with_enomem) {
  for (const std::size_t size : impossible_sizes()) {
    errno = 0;
    void* const p = api::calloc(1, size);
    EXPECT_EQ(p, nullptr) << size;
    EXPECT_EQ(errno, ENOMEM) << size;
    api::free(p);
  }
}

TEST(calloc_, preserves_errno_on_success) {
  for (const std::size_t size : boundary_sizes(mib)) {
    errno = untouched_errno;
    const Owned p = own(api::calloc(1, size));
    ASSERT_NE(p, nullptr) << size;
    ASSERT_EQ(errno, untouched_errno) << size;
  }
}

TEST(calloc_, of_fresh_memory_is_zero) {
  for (const std::size_t size : boundary_sizes(16 * mib)) {
    const Owned p = own(api::calloc(size, 1));
    ASSERT_NE(p, nullptr) << size;
    ASSERT_TRUE(all_zero(p.get(), size)) << size;
  }
}

TEST(calloc_, of_dirty_memory_is_zero) {
  for (const std::size_t size : boundary_sizes(4 * mib)) {
    const std::size_t count = size <= 4096 ? 40 : size <= 256 * kib ? 6 : 2;
    std::vector<Owned> blocks;
    for (std::size_t i = 0; i < count; ++i) {
      blocks.push_back(own(api::malloc(size)));
      ASSERT_NE(blocks.back(), nullptr);
      std::memset(blocks.back().get(), 0xa5, api::malloc_usable_size(blocks.back().get()));
    }
    blocks.clear();
    for (std::size_t i = 0; i < count; ++i) {
      blocks.push_back(own(api::calloc(1, size)));
      ASSERT_NE(blocks.back(), nullptr);
      ASSERT_TRUE(all_zero(blocks.back().get(), size)) << size;
    }
  }
}

TEST(calloc_, of_dirty_memory_that_was_trimmed_is_zero) {
  for (int round = 0; round < 5; ++round) {
    std::vector<Owned> blocks;
    for (std::size_t size = 16; size < 300 * kib; size += size / 3) {
      blocks.push_back(own(api::malloc(size)));
      std::memset(blocks.back().get(), 0xa5, size);
    }
    blocks.clear();
    if (round % 2 == 0) api::malloc_trim(0);
    for (std::size_t size = 16; size < 300 * kib; size += size / 3) {
      blocks.push_back(own(api::calloc(1, size)));
      ASSERT_TRUE(all_zero(blocks.back().get(), size)) << size;
    }
  }
}

}  // namespace
}  // namespace api
