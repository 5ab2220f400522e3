// SPDX-License-Identifier: MIT OR Apache-2.0
// Caps when the budget is spent: slots that would like more have it raised for a while, and what they use no more makes room.
#include "heap/heap.h"
#include "terrace/malloc.h"

#include <array>
#include <chrono>
#include <gtest/gtest.h>

namespace terrace::heap {
namespace {

constexpr std::size_t bulky_size = 6 * kib;  // its caps are not granted beyond the budget
constexpr std::size_t least_cap = 2 * bulky_size;

// No time for a tick or for many refusals.
void use(std::size_t size, int times) {
  std::array<void*, 40> blocks;
  for (int i = 0; i < times; ++i) {
    for (void*& p : blocks) p = terrace_malloc(size);
    for (void* p : blocks) terrace_free(p);
  }
}

void use_all_but_bulky_size() {
  for (std::size_t c = index(class_for(kib)); c < class_count; ++c) {
    if (class_sizes.bytes[c] != bulky_size && class_sizes.bytes[c] <= 64 * kib) use(class_sizes.bytes[c], 4);
  }
}

void spend_budget() {
  heap.set_budget(mib);  // a limit that does not rise
  for (int i = 0; i < 1000 && heap.core().budget().has(least_cap); ++i) use_all_but_bulky_size();
  ASSERT_FALSE(heap.core().budget().has(least_cap));
}

unsigned caps(std::size_t size) {
  unsigned sum = 0;
  heap.core().for_each(
      [&](level::Slot& slot) { sum += heap.core().load_cap(slot, home_class(class_for(size), heap.core().home_of(slot))); });
  return sum;
}

TEST(Grants, are_raised_for_slots_that_are_refused_all_the_time) {
  use(kib, 1);
  const std::uint64_t before = heap.core().budget().limit();
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (heap.core().budget().limit() <= before + before / 16 && std::chrono::steady_clock::now() < end)
    use_all_but_bulky_size();
  EXPECT_GT(heap.core().budget().limit(), before + before / 16);
  EXPECT_STREQ(heap.check_invariants(), nullptr);
}

TEST(Grants, go_from_what_is_used_no_more_to_what_is) {
  spend_budget();
  ASSERT_EQ(caps(bulky_size), 0U);
  use(bulky_size, 20);
  EXPECT_GT(caps(bulky_size), 0U);
  EXPECT_STREQ(heap.check_invariants(), nullptr);
}

// 12 blocks fit into two magazines of 8: then nothing is asked of a depot.
TEST(Grants, grow_for_a_class_that_only_exchanges_its_magazines) {
  constexpr std::size_t size = 600;
  spend_budget();
  std::array<void*, 12> blocks;
  for (int i = 0; i < 2000; ++i) {
    for (void*& p : blocks) p = terrace_malloc(size);
    for (void* p : blocks) terrace_free(p);
  }
  EXPECT_GE(caps(size), blocks.size());
  EXPECT_STREQ(heap.check_invariants(), nullptr);
}

}  // namespace
}  // namespace terrace::heap
