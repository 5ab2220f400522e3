// SPDX-License-Identifier: MIT OR Apache-2.0
// aligned_alloc, posix_memalign, memalign, valloc, pvalloc.
#include "support.h"

#include <bit>
#include <unistd.h>

namespace api {
namespace {

constexpr std::size_t largest_alignment = 64 * mib;

std::vector<std::size_t> sizes_around(std::size_t alignment) {
  std::vector<std::size_t> sizes = {0, 1, 15, 16, 17, 100, 1000, 5000, 40 * kib, alignment + 1};
  if (alignment <= 4 * mib) sizes.insert(sizes.end(), {alignment - 1, alignment, 2 * alignment, 3 * alignment + 5});
  return sizes;
}

// Aligned, large enough, and writable in full without harm to a neighbour.
void check_block(void* p, std::size_t alignment, std::size_t size) {
  ASSERT_NE(p, nullptr) << alignment << ", " << size;
  ASSERT_TRUE(is_aligned(p, alignment)) << p << " for " << alignment << ", " << size;
  const std::size_t usable = api::malloc_usable_size(p);
  ASSERT_GE(usable, size) << alignment;
  fill(p, usable < 128 * kib ? usable : 128 * kib, alignment + size);
  if (usable > 0) static_cast<unsigned char*>(p)[usable - 1] = pattern(alignment + size, usable - 1);
}

void check_content(void* p, std::size_t alignment, std::size_t size) {
  const std::size_t usable = api::malloc_usable_size(p);
  const std::size_t checked = usable < 128 * kib ? usable : 128 * kib;
  ASSERT_EQ(first_difference(p, checked, alignment + size), checked) << alignment << ", " << size;
}

TEST(aligned_alloc_, gives_every_alignment_for_every_kind_of_size) {
  for (std::size_t alignment = 1; alignment <= largest_alignment; alignment *= 2) {
    for (const std::size_t size : sizes_around(alignment)) {
      std::vector<Owned> blocks;
      const int count = alignment + size < 100 * kib ? 9 : 2;
      for (int i = 0; i < count; ++i) {
        blocks.push_back(own(api::aligned_alloc(alignment, size)));
        ASSERT_NO_FATAL_FAILURE(check_block(blocks.back().get(), alignment, size));
      }
      for (const Owned& p : blocks) ASSERT_NO_FATAL_FAILURE(check_content(p.get(), alignment, size));
    }
  }
}

TEST(aligned_alloc_, every_small_size_at_every_small_alignment) {
  for (std::size_t alignment = 1; alignment <= 8192; alignment *= 2) {
    for (std::size_t size = 0; size < 9000; size += size < 300 ? 1 : 61) {
      const Owned a = own(api::aligned_alloc(alignment, size));
      const Owned b = own(api::aligned_alloc(alignment, size));
      ASSERT_NO_FATAL_FAILURE(check_block(a.get(), alignment, size));
      ASSERT_NO_FATAL_FAILURE(check_block(b.get(), alignment, size));
      ASSERT_NO_FATAL_FAILURE(check_content(a.get(), alignment, size));
    }
  }
}

TEST(aligned_alloc_, a_gigabyte_of_alignment) {
  const Owned p = own(api::aligned_alloc(gib, 100));
  ASSERT_NO_FATAL_FAILURE(check_block(p.get(), gib, 100));
}

TEST(aligned_alloc_, an_alignment_that_is_no_power_of_two_fails_with_einval) {
#if !defined(TERRACE_TESTS_PREFIXED)
  if (!is_terrace() && std::strcmp(gnu_get_libc_version(), "2.38") < 0) GTEST_SKIP() << "glibc before 2.38 rounds up";
#endif
  for (const std::size_t alignment :
       {std::size_t{0}, std::size_t{3}, std::size_t{24}, std::size_t{48}, 4095 * std::size_t{1}, SIZE_MAX, SIZE_MAX / 2}) {
    errno = 0;
    void* const p = api::aligned_alloc(alignment, 100);
    EXPECT_EQ(p, nullptr) << alignment;
    EXPECT_EQ(errno, EINVAL) << alignment;
    api::free(p);
  }
}

TEST(aligned_alloc_, of_an_impossible_size_fails_with_enomem) {
  for (const std::size_t alignment : {std::size_t{8}, std::size_t{64}, 4 * kib, mib, gib}) {
    for (const std::size_t size : impossible_sizes()) {
      errno = 0;
      void* const p = api::aligned_alloc(alignment, size);
      EXPECT_EQ(p, nullptr) << alignment << ", " << size;
      EXPECT_EQ(errno, ENOMEM) << alignment << ", " << size;
      api::free(p);
    }
  }
}

TEST(aligned_alloc_, of_an_impossible_alignment_fails_with_enomem) {
  for (const unsigned bit : {48U, 56U, 62U, 63U}) {
    errno = 0;
    void* const p = api::aligned_alloc(std::size_t{1} << bit, 100);
    EXPECT_EQ(p, nullptr) << bit;
    EXPECT_EQ(errno, ENOMEM) << bit;
    api::free(p);
  }
}

TEST(aligned_alloc_, preserves_errno_on_success) {
  for (std::size_t alignment = 1; alignment <= mib; alignment *= 2) {
    errno = untouched_errno;
    const Owned p = own(api::aligned_alloc(alignment, 200));
    ASSERT_NE(p, nullptr);
    ASSERT_EQ(errno, untouched_errno);
  }
}

TEST(aligned_alloc_, memory_of_aligned_blocks_is_used_again) {
  for (int i = 0; i < 4096; ++i) {  // 256 GiB in turn
    const Owned p = own(api::aligned_alloc(32 * mib, 32 * mib));
    ASSERT_NE(p, nullptr) << i;
  }
}

TEST(posix_memalign_, gives_every_alignment) {
  for (std::size_t alignment = sizeof(void*); alignment <= largest_alignment; alignment *= 2) {
    for (const std::size_t size : {std::size_t{1}, std::size_t{100}, 5000 * std::size_t{1}, 300 * kib}) {
      void* p = nullptr;
      errno = untouched_errno;
      ASSERT_EQ(api::posix_memalign(&p, alignment, size), 0);
      const Owned owned = own(p);
      ASSERT_EQ(errno, untouched_errno);
      ASSERT_NO_FATAL_FAILURE(check_block(p, alignment, size));
    }
  }
}

TEST(posix_memalign_, of_zero_bytes_can_be_freed) {
  for (std::size_t alignment = sizeof(void*); alignment <= mib; alignment *= 2) {
    void* p = nullptr;
    ASSERT_EQ(api::posix_memalign(&p, alignment, 0), 0);
    EXPECT_TRUE(is_aligned(p, alignment));
    api::free(p);
  }
}

TEST(posix_memalign_, of_a_bad_alignment_returns_einval_and_leaves_the_result) {
  int mark = 0;
  for (const std::size_t alignment : {std::size_t{0}, std::size_t{1}, std::size_t{2}, std::size_t{4}, std::size_t{7},
                                      std::size_t{12}, std::size_t{24}, std::size_t{100}, SIZE_MAX, SIZE_MAX - 7}) {
    void* p = &mark;
    errno = untouched_errno;
    EXPECT_EQ(api::posix_memalign(&p, alignment, 100), EINVAL) << alignment;
    EXPECT_EQ(p, &mark) << alignment;
    EXPECT_EQ(errno, untouched_errno) << alignment;
  }
}

TEST(posix_memalign_, without_memory_returns_enomem_and_leaves_the_result) {
  int mark = 0;
  for (const std::size_t alignment : {std::size_t{8}, std::size_t{64}, 4 * kib, gib}) {
    for (const std::size_t size : impossible_sizes()) {
      void* p = &mark;
      errno = untouched_errno;
      EXPECT_EQ(api::posix_memalign(&p, alignment, size), ENOMEM) << size;
      EXPECT_EQ(p, &mark) << size;
      // POSIX leaves errno open; glibc 2.36 sets it, Terrace promises not to.
      if (!is_terrace()) continue;
      EXPECT_EQ(errno, untouched_errno) << size;
    }
  }
}

#if !defined(TERRACE_TESTS_PREFIXED)

TEST(memalign_, gives_every_alignment) {
  for (std::size_t alignment = 1; alignment <= largest_alignment; alignment *= 2) {
    for (const std::size_t size : {std::size_t{0}, std::size_t{100}, 5000 * std::size_t{1}, 300 * kib}) {
      errno = untouched_errno;
      const Owned p = own(opaque(::memalign(alignment, size)));
      ASSERT_EQ(errno, untouched_errno);
      ASSERT_NO_FATAL_FAILURE(check_block(p.get(), alignment, size));
    }
  }
}

TEST(memalign_, rounds_an_alignment_up_to_a_power_of_two) {
  for (const std::size_t alignment :
       {std::size_t{0}, std::size_t{3}, std::size_t{24}, std::size_t{100}, 5000 * std::size_t{1}}) {
    const Owned p = own(opaque(::memalign(opaque(alignment), 100)));
    ASSERT_NO_FATAL_FAILURE(check_block(p.get(), std::bit_ceil(alignment), 100));
  }
}

TEST(memalign_, fails_with_einval_beyond_the_largest_power_of_two_and_with_enomem_before) {
  errno = 0;
  EXPECT_EQ(opaque(::memalign(opaque(SIZE_MAX), 100)), nullptr);
  EXPECT_EQ(errno, EINVAL);
  errno = 0;
  EXPECT_EQ(opaque(::memalign(opaque(SIZE_MAX / 2 + 1), 100)), nullptr);
  EXPECT_EQ(errno, ENOMEM);
  for (const std::size_t size : impossible_sizes()) {
    errno = 0;
    EXPECT_EQ(opaque(::memalign(4096, opaque(size))), nullptr) << size;
    EXPECT_EQ(errno, ENOMEM) << size;
  }
}

TEST(valloc_, aligns_to_the_page) {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  for (const std::size_t size : {std::size_t{0}, std::size_t{1}, std::size_t{100}, page - 1, page, page + 1, mib}) {
    errno = untouched_errno;
    const Owned p = own(opaque(::valloc(opaque(size))));
    ASSERT_EQ(errno, untouched_errno);
    ASSERT_NO_FATAL_FAILURE(check_block(p.get(), page, size));
  }
}

TEST(pvalloc_, aligns_to_the_page_and_rounds_up_to_pages) {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  for (const std::size_t size : {std::size_t{0}, std::size_t{1}, page - 1, page, page + 1, mib + 1}) {
    errno = untouched_errno;
    const Owned p = own(opaque(::pvalloc(opaque(size))));
    ASSERT_EQ(errno, untouched_errno);
    ASSERT_NO_FATAL_FAILURE(check_block(p.get(), page, (size + page - 1) / page * page));
  }
}

TEST(valloc_, of_an_impossible_size_fails_with_enomem) {
  for (const std::size_t size : impossible_sizes()) {
    errno = 0;
    EXPECT_EQ(opaque(::valloc(opaque(size))), nullptr) << size;
    EXPECT_EQ(errno, ENOMEM) << size;
    errno = 0;
    EXPECT_EQ(opaque(::pvalloc(opaque(size))), nullptr) << size;
    EXPECT_EQ(errno, ENOMEM) << size;
  }
}

#endif

}  // namespace
}  // namespace api
