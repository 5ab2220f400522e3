// SPDX-License-Identifier: MIT OR Apache-2.0
// realloc, reallocarray.
#include "support.h"

namespace api {
namespace {

TEST(realloc_, of_null_allocates) {
  const Owned p = own(api::realloc(nullptr, 100));
  ASSERT_NE(p, nullptr);
  EXPECT_GE(api::malloc_usable_size(p.get()), 100U);
  const Owned q = own(api::realloc(nullptr, 0));
  EXPECT_NE(q, nullptr);
}

TEST(realloc_, to_zero_bytes_frees_and_returns_null) {
  for (const std::size_t size : {std::size_t{1}, std::size_t{100}, 40 * kib, 8 * mib}) {
    void* const p = api::malloc(size);
    ASSERT_NE(p, nullptr);
    errno = untouched_errno;
    EXPECT_EQ(api::realloc(p, 0), nullptr);
    EXPECT_EQ(errno, untouched_errno);
  }
}

TEST(realloc_, to_zero_bytes_really_frees) {
  for (int i = 0; i < 1024; ++i) {  // 64 GiB in turn
    void* const p = api::malloc(64 * mib);
    ASSERT_NE(p, nullptr) << i;
    ASSERT_EQ(api::realloc(p, 0), nullptr);
  }
}

TEST(realloc_, to_an_impossible_size_fails_with_enomem_and_leaves_the_block) {
  for (const std::size_t have : {std::size_t{1}, std::size_t{100}, 5000 * std::size_t{1}, 40 * kib, 3 * mib}) {
    const Owned p = own(api::malloc(have));
    ASSERT_NE(p, nullptr);
    fill(p.get(), have, have);
    for (const std::size_t size : impossible_sizes()) {
      errno = 0;
      ASSERT_EQ(api::realloc(p.get(), size), nullptr) << have << " to " << size;
      ASSERT_EQ(errno, ENOMEM) << have << " to " << size;
      ASSERT_EQ(first_difference(p.get(), have, have), have);
    }
  }
}

// Content, room and errno, for one step.
void resize(Owned& p, std::size_t from, std::size_t to) {
  fill(p.get(), from, from);
  errno = untouched_errno;
  void* const moved = api::realloc(p.get(), to);
  ASSERT_NE(moved, nullptr) << from << " to " << to;
  (void)p.release();  // NOLINT(bugprone-unused-return-value): realloc took it
  p.reset(moved);
  ASSERT_EQ(errno, untouched_errno) << from << " to " << to;
  ASSERT_TRUE(is_aligned(moved, 16)) << from << " to " << to;
  ASSERT_GE(api::malloc_usable_size(moved), to) << from << " to " << to;
  const std::size_t kept = from < to ? from : to;
  ASSERT_EQ(first_difference(moved, kept, from), kept) << from << " to " << to;
  std::memset(moved, 0x5a, api::malloc_usable_size(moved));
}

void walk(const std::vector<std::size_t>& sizes) {
  Owned p = own(api::malloc(sizes.front()));
  for (std::size_t i = 1; i < sizes.size(); ++i) ASSERT_NO_FATAL_FAILURE(resize(p, sizes[i - 1], sizes[i]));
}

TEST(realloc_, keeps_the_content_when_growing_by_one_byte) {
  std::vector<std::size_t> sizes;
  for (std::size_t size = 1; size < 3000; ++size) sizes.push_back(size);
  walk(sizes);
}

TEST(realloc_, keeps_the_content_when_growing_and_shrinking_by_a_factor) {
  std::vector<std::size_t> sizes;
  for (std::size_t size = 1; size < 32 * mib; size += size / 2 + 1) sizes.push_back(size);
  std::vector<std::size_t> down(sizes.rbegin(), sizes.rend());
  sizes.insert(sizes.end(), down.begin(), down.end());
  walk(sizes);
}

TEST(realloc_, keeps_the_content_when_shrinking_by_small_parts_and_growing_again) {
  for (const std::size_t part : {std::size_t{4}, std::size_t{9}, std::size_t{40}}) {
    std::vector<std::size_t> sizes;
    for (std::size_t size = 3 * mib; size > 1; size -= size / part + 1) {
      sizes.push_back(size);
      if (sizes.size() % 7 == 0) sizes.push_back(size + size / 2);
    }
    walk(sizes);
  }
}

TEST(realloc_, keeps_the_content_between_all_kinds_of_size) {
  const std::vector<std::size_t> kinds = {1,         16,        17,        100, 1000,    4096,   10000, 32 * kib, 32 * kib + 1,
                                          100 * kib, 128 * kib, 300 * kib, mib, mib + 1, 5 * mib};
  std::vector<std::size_t> sizes;
  for (const std::size_t a : kinds) {
    for (const std::size_t b : kinds) {
      sizes.push_back(a);
      sizes.push_back(b);
    }
  }
  walk(sizes);
}

TEST(realloc_, to_the_same_size_keeps_the_block) {
  for (const std::size_t size : {std::size_t{24}, std::size_t{1000}, 20 * kib, 300 * kib, 2 * mib}) {
    Owned p = own(api::malloc(size));
    for (int i = 0; i < 20; ++i) ASSERT_NO_FATAL_FAILURE(resize(p, size, size));
  }
}

TEST(realloc_, up_to_the_usable_size_stays_in_place) {
  for (std::size_t size = 1; size < 300 * kib; size += size / 5 + 1) {
    void* const p = api::malloc(size);
    const std::size_t usable = api::malloc_usable_size(p);
    const Owned q = own(api::realloc(p, usable));
    EXPECT_EQ(q.get(), p) << size << ", usable " << usable;
  }
}

TEST(realloc_, of_an_aligned_block_keeps_the_content) {
  for (std::size_t alignment = 32; alignment <= 4 * mib; alignment *= 2) {
    for (const std::size_t size : {std::size_t{1}, std::size_t{100}, 5000 * std::size_t{1}, 100 * kib}) {
      Owned p = own(api::aligned_alloc(alignment, size));
      ASSERT_NE(p, nullptr);
      ASSERT_NO_FATAL_FAILURE(resize(p, size, 2 * size + 100));
      ASSERT_NO_FATAL_FAILURE(resize(p, 2 * size + 100, size));
      ASSERT_NO_FATAL_FAILURE(resize(p, size, 3 * mib));
      ASSERT_NO_FATAL_FAILURE(resize(p, 3 * mib, 10));
    }
  }
}

TEST(realloc_, of_many_large_blocks_keeps_each_content) {
  // Neighbours that grow in turn are in each other's way.
  constexpr std::size_t count = 16;
  std::vector<Owned> blocks;
  std::vector<std::size_t> sizes(count, 40 * kib);
  for (std::size_t i = 0; i < count; ++i) {
    blocks.push_back(own(api::malloc(sizes[i])));
    fill(blocks[i].get(), sizes[i], i);
  }
  for (std::size_t step = 0; step < 20 * count; ++step) {
    const std::size_t i = step * 7 % count;
    const std::size_t to = step % 5 == 4 ? sizes[i] / 2 + 1 : sizes[i] + sizes[i] / 4 + 4096;
    void* const moved = api::realloc(blocks[i].get(), to);
    ASSERT_NE(moved, nullptr);
    (void)blocks[i].release();  // NOLINT(bugprone-unused-return-value): realloc took it
    blocks[i].reset(moved);
    const std::size_t kept = to < sizes[i] ? to : sizes[i];
    ASSERT_EQ(first_difference(moved, kept, i), kept);
    sizes[i] = to;
    fill(moved, to, i);
    for (std::size_t j = 0; j < count; ++j) {
      ASSERT_EQ(first_difference(blocks[j].get(), sizes[j], j), sizes[j]) << "block " << j << ", step " << step;
    }
  }
}

TEST(realloc_, grows_to_a_gigabyte_keeping_the_content) {
  Owned p = own(api::malloc(mib));
  fill(p.get(), mib, 3);
  for (std::size_t size = 2 * mib; size <= gib; size *= 2) {
    void* const moved = api::realloc(p.get(), size);
    ASSERT_NE(moved, nullptr) << size;
    (void)p.release();  // NOLINT(bugprone-unused-return-value): realloc took it
    p.reset(moved);
    ASSERT_EQ(first_difference(moved, mib, 3), mib);
    ASSERT_GE(api::malloc_usable_size(moved), size);
    static_cast<char*>(moved)[size - 1] = 1;
  }
}

TEST(reallocarray_, of_null_allocates) {
  const Owned p = own(api::reallocarray(nullptr, 10, 100));
  ASSERT_NE(p, nullptr);
  EXPECT_GE(api::malloc_usable_size(p.get()), 1000U);
}

TEST(reallocarray_, keeps_the_content) {
  void* const p = api::reallocarray(nullptr, 10, 30);
  fill(p, 300, 9);
  const Owned q = own(api::reallocarray(p, 1000, 300));
  ASSERT_NE(q, nullptr);
  EXPECT_EQ(first_difference(q.get(), 300, 9), 300U);
}

TEST(reallocarray_, overflow_fails_with_enomem_and_leaves_the_block) {
  const Owned p = own(api::malloc(300));
  fill(p.get(), 300, 9);
  for (const auto& [count, size] : {std::pair{SIZE_MAX, std::size_t{2}},
                                    {std::size_t{2}, SIZE_MAX},
                                    {SIZE_MAX / 2 + 1, std::size_t{2}},
                                    {std::size_t{1} << 32, std::size_t{1} << 32},
                                    {SIZE_MAX, std::size_t{1}}}) {
    errno = 0;
    EXPECT_EQ(api::reallocarray(p.get(), count, size), nullptr);
    EXPECT_EQ(errno, ENOMEM);
    EXPECT_EQ(first_difference(p.get(), 300, 9), 300U);
  }
}

TEST(reallocarray_, to_zero_elements_frees_and_returns_null) {
  EXPECT_EQ(api::reallocarray(api::malloc(100), 0, 10), nullptr);
  EXPECT_EQ(api::reallocarray(api::malloc(100), 10, 0), nullptr);
}

}  // namespace
}  // namespace api
