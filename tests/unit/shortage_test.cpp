// SPDX-License-Identifier: MIT OR Apache-2.0
// The window gets no more memory: what malloc finds then, and how it is counted, on the rung that TERRACE_RUNG names.
#include "heap/heap.h"
#include "introspect/statistics.h"
#include "os/memory.h"
#include "terrace/malloc.h"

#include <gtest/gtest.h>
#include <memory>
#include <sched.h>
#include <utility>
#include <vector>

namespace terrace::os {

Mapped real_map_at(void* address, std::size_t bytes) noexcept asm("__real__ZN7terrace2os6map_atEPvm");
Mapped real_map_behind(void* address, std::size_t bytes) noexcept asm("__real__ZN7terrace2os10map_behindEPvm");
Mapped wrap_map_at(void* address, std::size_t bytes) noexcept asm("__wrap__ZN7terrace2os6map_atEPvm");
Mapped wrap_map_behind(void* address, std::size_t bytes) noexcept asm("__wrap__ZN7terrace2os10map_behindEPvm");

namespace {
bool refuses = false;
std::size_t most = ~std::size_t{0};  // more at once is refused
unsigned asked = 0;                  // for memory behind the window
}  // namespace

Mapped wrap_map_at(void* address, std::size_t bytes) noexcept {
  return refuses ? Mapped::refused : real_map_at(address, bytes);
}
Mapped wrap_map_behind(void* address, std::size_t bytes) noexcept {
  ++asked;
  return refuses || bytes > most ? Mapped::refused : real_map_behind(address, bytes);
}

}  // namespace terrace::os

namespace terrace::heap {
namespace {

using introspect::Column, introspect::Level, introspect::Snapshot;

struct Counted {
  std::uint64_t allocations, foreign;
};
Counted counted(SizeClass c) {
  auto s = std::make_unique<Snapshot>();
  introspect::take_snapshot(*s);
  const introspect::Row& row = s->by_class[static_cast<std::size_t>(Level::core)][index(c)];
  return {.allocations = row.get(Column::allocations), .foreign = row.get(Column::foreign)};
}

class Shortage : public testing::Test {
 protected:
  static constexpr std::size_t largest = 4 * mib;

  void SetUp() override {
    stay_on_this_cpu();
    terrace_free(terrace_malloc(1));
  }
  void TearDown() override {
    os::refuses = false;
    os::most = ~std::size_t{0};
    for (const level::Magazine m : magazines_) magazines().release(m);
    for (void* p : blocks_) terrace_free(p);
    terrace_malloc_trim(0);
    EXPECT_STREQ(heap.check_invariants(), nullptr);
  }

  // No span is left. The sizes are powers of two: what slabs of other sizes have, they keep.
  void take_all_spans() {
    os::refuses = true;
    for (std::size_t size = largest; size >= 16; size /= 2) take_all(size);
  }
  std::size_t take_all(std::size_t size) {
    std::size_t n = 0;
    for (; void* const p = terrace_malloc(size); ++n) blocks_.push_back(p);
    return n;
  }
  void take_all_magazines() {
    for (unsigned kind = 0; kind < level::magazine_kinds; ++kind) {
      while (const level::Magazine m = magazines().take({}, level::magazine_capacity(kind))) magazines_.push_back(m);
    }
  }
  // A slab with one block in use.
  void make_slab(HomeClass h) { blocks_.push_back(slabs().cut_one(h, true)); }

  static Magazines& magazines() { return const_cast<Magazines&>(heap.magazines()); }
  static Slabs& slabs() { return const_cast<Slabs&>(heap.slabs()); }

  std::vector<void*> blocks_;

 private:
  static void stay_on_this_cpu() {
    cpu_set_t here;
    CPU_ZERO(&here);
    CPU_SET(sched_getcpu(), &here);
    sched_setaffinity(0, sizeof here, &here);
  }

  std::vector<level::Magazine> magazines_;
};

TEST_F(Shortage, a_block_of_another_home_is_counted_once) {
  constexpr std::size_t size = 48, enough = 20;
  const SizeClass c = class_for(size);
  level::Slot* const slot = heap.core().current();
  ASSERT_NE(slot, nullptr);
  make_slab(home_class(c, (heap.core().home_of(*slot) + 1) % max_homes));
  take_all_spans();
  const Counted before = counted(c);
  const std::size_t n = take_all(size);
  const Counted after = counted(c);
  EXPECT_GE(after.foreign - before.foreign, enough);
  EXPECT_EQ(after.allocations - before.allocations, n);
}

TEST_F(Shortage, there_is_a_block_but_no_memory_for_a_magazine) {
  constexpr std::size_t size = 112;
  make_slab(home_class(class_for(size), 0));
  take_all_spans();
  take_all_magazines();
  EXPECT_EQ(terrace_malloc(largest), nullptr);  // all that can be drained is
  const Counted before = counted(class_for(size));
  const std::size_t n = take_all(size);
  EXPECT_GE(n, 1U);
  EXPECT_EQ(counted(class_for(size)).allocations - before.allocations, n);
}

// A slab of its class has more granules than are free: five, of which the slots may need one for magazines.
TEST_F(Shortage, where_no_slab_fits_a_block_may) {
  constexpr std::size_t size = 40000;
  void* const large = terrace_malloc(300000);
  take_all_spans();
  take_all(size);
  terrace_free(large);
  const std::size_t n = take_all(size);
  EXPECT_GE(n, 4U);
  EXPECT_LE(n, 5U);
  EXPECT_GE(terrace_malloc_usable_size(blocks_.back()), size);
  // It goes where others go, and so does what becomes of it.
  void* const shrunk = terrace_realloc(blocks_.back(), 30000);
  ASSERT_NE(shrunk, nullptr);
  blocks_.back() = shrunk;
}

// For a magazine, if there is none, for a slab, and for one block if a slab is longer; for each once.
TEST_F(Shortage, a_request_that_is_refused_again_asks_the_system_a_few_times) {
  take_all_spans();
  for (const std::size_t size : {std::size_t{1000}, std::size_t{40000}, std::size_t{140000}, std::size_t{1000000}}) {
    take_all(size);
    take_all(size);  // by now, nothing is left that could be drained
    os::asked = 0;
    EXPECT_EQ(terrace_malloc(size), nullptr);
    EXPECT_LE(os::asked, size > 4 * kib && size <= SizeRule::largest ? 3U : 2U) << size;
  }
}

#if !defined(TERRACE_SANITIZED)  // a window that is reserved does not grow by mapping
TEST(ShortageOfSpans, what_is_free_at_the_frontier_and_what_can_be_had_behind_it_are_one) {
  span::Spans spans;
  ASSERT_TRUE(spans.open());
  const auto frontier = static_cast<std::uint32_t>(spans.window().extent() >> span::granule_shift);
  const span::GranuleIndex first = spans.take(frontier - 2, span::State::taken).first;
  ASSERT_EQ(first, 0U);
  os::most = 3 * span::granule_size;
  const span::GranuleIndex next = spans.take(5, span::State::taken).first;
  os::most = ~std::size_t{0};
  EXPECT_EQ(next, frontier - 2);
  EXPECT_EQ(spans.check_invariants(), nullptr);
}
#endif

}  // namespace
}  // namespace terrace::heap
