// SPDX-License-Identifier: MIT OR Apache-2.0
// Alignment and usable size of every size; malloc_usable_size, malloc_trim.
#include "support.h"

#include <cstddef>
#include <fstream>
#include <string>
#include <unistd.h>

namespace api {
namespace {

constexpr std::size_t every_size_up_to = 40000;

static_assert(alignof(std::max_align_t) == 16);

unsigned char mark_of(std::size_t size) { return static_cast<unsigned char>(size % 251 + 1); }

bool all_bytes_are(const void* p, std::size_t size, unsigned char value) {
  const auto* const bytes = static_cast<const unsigned char*>(p);
  return size == 0 || (bytes[0] == value && std::memcmp(bytes, bytes + 1, size - 1) == 0);
}

TEST(every_size, is_aligned_and_may_be_written_up_to_its_usable_size) {
  constexpr std::size_t together = 24;  // so many live at once, to be damaged by a neighbour that is too near
  struct Entry {
    Owned block;
    std::size_t usable;
    std::size_t size;
  };
  std::vector<Entry> ring(together);
  const auto check = [](const Entry& e) {
    if (e.block == nullptr) return;
    ASSERT_TRUE(all_bytes_are(e.block.get(), e.usable, mark_of(e.size))) << "block of " << e.size;
  };
  for (std::size_t size = 0; size <= every_size_up_to; ++size) {
    Entry& e = ring[size % together];
    ASSERT_NO_FATAL_FAILURE(check(e));
    e.block = own(api::malloc(size));
    ASSERT_NE(e.block, nullptr) << size;
    ASSERT_TRUE(is_aligned(e.block.get(), 16)) << size;
    e.size = size;
    e.usable = api::malloc_usable_size(e.block.get());
    ASSERT_GE(e.usable, size);
    std::memset(e.block.get(), mark_of(size), e.usable);
  }
  for (const Entry& e : ring) ASSERT_NO_FATAL_FAILURE(check(e));
}

TEST(every_size, of_calloc_and_realloc_is_aligned) {
  Owned grown;
  for (std::size_t size = 1; size <= every_size_up_to; size += size < 2000 ? 1 : 13) {
    const Owned p = own(api::calloc(1, size));
    ASSERT_NE(p, nullptr) << size;
    ASSERT_TRUE(is_aligned(p.get(), 16)) << size;
    ASSERT_GE(api::malloc_usable_size(p.get()), size);
    void* const q = api::realloc(grown.release(), size);
    ASSERT_NE(q, nullptr) << size;
    grown.reset(q);
    ASSERT_TRUE(is_aligned(q, 16)) << size;
    ASSERT_GE(api::malloc_usable_size(q), size);
  }
}

TEST(every_size, selected_up_to_a_gigabyte_are_aligned_and_usable) {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  for (const std::size_t size : boundary_sizes(gib)) {
    const Owned p = own(api::malloc(size));
    ASSERT_NE(p, nullptr) << size;
    ASSERT_TRUE(is_aligned(p.get(), 16)) << size;
    const std::size_t usable = api::malloc_usable_size(p.get());
    ASSERT_GE(usable, size);
    // Every page of the small, some of the very large: what counts is that it may be touched, first and last byte included.
    const std::size_t step = page * (size > mib ? 1 + size / mib : 1);
    auto* const bytes = static_cast<volatile unsigned char*>(p.get());
    for (std::size_t i = 0; i < usable; i += step) bytes[i] = 1;
    if (usable > 0) bytes[usable - 1] = 1;
  }
}

TEST(malloc_usable_size_, of_null_is_zero) { EXPECT_EQ(api::malloc_usable_size(nullptr), 0U); }

TEST(malloc_usable_size_, preserves_errno) {
  const Owned p = own(api::malloc(100));
  errno = untouched_errno;
  EXPECT_GE(api::malloc_usable_size(p.get()), 100U);
  EXPECT_EQ(errno, untouched_errno);
}

TEST(malloc_usable_size_, wastes_little) {
  for (std::size_t size = 64; size <= 64 * mib; size += size / 7) {
    const Owned p = own(api::malloc(size));
    // Pages and classes round up; nobody should get twice what was asked for.
    EXPECT_LE(api::malloc_usable_size(p.get()), size * 2 + 8192) << size;
  }
}

TEST(malloc_trim_, returns_zero_or_one_and_harms_no_block) {
  std::vector<Owned> blocks;
  for (std::size_t size = 1; size < 2 * mib; size += size / 9 + 1) {
    blocks.push_back(own(api::malloc(size)));
    fill(blocks.back().get(), size, size);
  }
  for (std::size_t i = 0; i < blocks.size(); i += 2) blocks[i].reset();
  for (int round = 0; round < 3; ++round) {
    const int result = api::malloc_trim(0);
    EXPECT_TRUE(result == 0 || result == 1) << result;
  }
  std::size_t i = 0;
  for (std::size_t size = 1; size < 2 * mib; size += size / 9 + 1, ++i) {
    if (blocks[i] == nullptr) continue;
    ASSERT_EQ(first_difference(blocks[i].get(), size, size), size);
  }
}

std::size_t resident_bytes() {
  std::ifstream statm("/proc/self/statm");
  std::size_t total = 0;
  std::size_t resident = 0;
  statm >> total >> resident;
  return resident * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

TEST(malloc_trim_, gives_memory_back) {
#if defined(TERRACE_TESTS_PREFIXED)
  GTEST_SKIP() << "a sanitizer's shadow memory counts too";
#endif
  std::vector<void*> blocks(2000);  // of 32,000 bytes: below what glibc maps singly
  for (void*& p : blocks) {
    p = api::malloc(32000);
    std::memset(p, 1, 32000);
  }
  const std::size_t before = resident_bytes();
  for (void* p : blocks) api::free(p);
  api::malloc_trim(0);
  const std::size_t after = resident_bytes();
  EXPECT_LE(after + 48 * mib, before) << "of 64 MB that were freed";
}

}  // namespace
}  // namespace api
