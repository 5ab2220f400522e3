// SPDX-License-Identifier: MIT OR Apache-2.0
#include "check/checker.h"
#include "check/zones.h"
#include "os/guard_pages.h"
#include "os/memory.h"

#include <csignal>
#include <cstdlib>
#include <gtest/gtest.h>
#include <unistd.h>
#include <vector>

#if defined(TERRACE_SANITIZED)
// The allocator below the checker is the sanitizer's here: it is to refuse what there is not. What waits in a quarantine at the
// end is no leak.
// NOLINTBEGIN(bugprone-reserved-identifier)
extern "C" const char* __asan_default_options() { return "allocator_may_return_null=1:detect_leaks=0"; }
extern "C" const char* __tsan_default_options() { return "allocator_may_return_null=1"; }
// NOLINTEND(bugprone-reserved-identifier)
#endif

namespace terrace::check {
namespace {

static_assert(sizeof(Block) == 32);  // as docs/theory/65-check.md has it: tools/check_docs.py compares

TEST(CheckOptions, grammar) {
  Options o;
  EXPECT_TRUE(parse_options("0", o));
  EXPECT_FALSE(o.on);
  EXPECT_TRUE(parse_options("1", o));
  EXPECT_TRUE(o.on);
  EXPECT_EQ(o.sample, 1000U);
  EXPECT_TRUE(parse_options("1,sample:7,quarantine:3M", o));
  EXPECT_EQ(o.sample, 7U);
  EXPECT_EQ(o.quarantine, 3 * mib);
  EXPECT_TRUE(parse_options("1,quarantine:0,sample:0", o));
  EXPECT_EQ(o.sample, 0U);
  EXPECT_EQ(o.quarantine, 0U);
  for (const char* bad : {"", "2", "yes", "01", "1,", "1,,sample:1", "1sample:1", "1,sample", "1,sample:", "1,sample:x",
                          "1,sample:1.5", "0,sample:1", "1,quarantine:1T", " 1", "1 "}) {
    Options ignored;
    EXPECT_FALSE(parse_options(bad, ignored)) << bad;
  }
}

TEST(Zones, every_byte_beside_a_block_is_looked_at) {
  for (const std::size_t size : {0U, 1U, 15U, 16U, 17U, 100U, 4000U}) {
    for (const std::size_t align : {16U, 64U, 1024U}) {
      EXPECT_EQ((front_of(align) + size + back_of(size)) % smallest_zone, 0U);
      EXPECT_GE(back_of(size), smallest_zone);
      std::vector<std::byte> room(front_of(align) + size + back_of(size));
      std::byte* const start = room.data() + front_of(align);
      fill_zones(start, size, align);
      EXPECT_EQ(damage_of(start, size, align), Damage::none);
      const auto front = static_cast<std::ptrdiff_t>(looked_at_before(align));
      const auto end = static_cast<std::ptrdiff_t>(size + back_of(size));
      for (std::ptrdiff_t i = -front; i < end; ++i) {
        const std::byte before = start[i];
        start[i] ^= std::byte{1};
        const Damage expected = i < 0 ? Damage::before : static_cast<std::size_t>(i) < size ? Damage::none : Damage::beyond;
        ASSERT_EQ(damage_of(start, size, align), expected) << size << " " << align << " " << i;
        start[i] = before;
      }
    }
  }
}

TEST(Registry, knows_what_was_added_until_it_is_removed) {
  static Registry registry;
  ASSERT_TRUE(registry.open());
  constexpr std::size_t count = 100000;
  const auto address = [](std::size_t i) { return pointer_to(0x100000 + i * 16); };
  for (std::size_t i = 0; i < count; ++i) {
    Block b;
    b.start = address(i);
    b.size = i;
    ASSERT_TRUE(registry.add(b));
  }
  for (std::size_t i = 0; i < count; i += 2) registry.remove(address(i));
  Block b;
  for (std::size_t i = 0; i < count; ++i) {
    ASSERT_EQ(registry.find(address(i), b, [](Block&) {}), i % 2 == 1);
    if (i % 2 == 1) {
      ASSERT_EQ(b.size, i);
    }
  }
  std::size_t seen = 0;
  EXPECT_FALSE(registry.find_any(b, [&seen](const Block&) { return ++seen == 0; }));
  EXPECT_EQ(seen, count / 2);
}

TEST(Quarantine, first_in_first_out_within_its_bytes) {
  static Quarantine quarantine;
  ASSERT_TRUE(quarantine.open(100 * kib));
  EXPECT_TRUE(quarantine.takes(25 * kib));
  EXPECT_FALSE(quarantine.takes(25 * kib + 1));
  std::uintptr_t out = 1;
  for (std::uintptr_t i = 1; i <= 1000; ++i) {
    ASSERT_TRUE(quarantine.put({.start = pointer_to(i), .size = kib}));
    for (Quarantine::Freed f = quarantine.evict(); f.start != nullptr; f = quarantine.evict())
      ASSERT_EQ(f.start, pointer_to(out++));
  }
  EXPECT_GT(out, 890U);
  EXPECT_LT(out, 960U);
}

// The heap beneath: libc's.
void* from_libc(std::size_t size, std::size_t align) noexcept { return std::aligned_alloc(align, round_up(size, align)); }
std::size_t released = 0;
void to_libc(void* p) noexcept {
  ++released;
  std::free(p);
}

bool is_never_free(const void*) noexcept { return false; }

class CheckerTest : public testing::Test {
 protected:
  CheckerTest() {
    Options o;
    o.on = true;
    o.sample = 0;
    o.quarantine = 64 * kib;
    checker_.open(o, {.allocate = from_libc, .release = to_libc, .is_free_again = is_never_free});
  }
  Checker checker_;
};

TEST_F(CheckerTest, blocks_are_aligned_and_know_their_size) {
  for (std::size_t align = 16; align <= 65536; align *= 2) {
    for (const std::size_t size : {std::size_t{0}, std::size_t{1}, std::size_t{100}, 40 * kib}) {
      void* const p = checker_.allocate(size, align);
      ASSERT_NE(p, nullptr);
      EXPECT_EQ(address_of(p) % align, 0U);
      EXPECT_EQ(checker_.usable_size(p, "test"), size);
      checker_.free(p, {});
    }
  }
}

TEST_F(CheckerTest, sizes_that_wrap_are_refused) {
  for (const std::size_t size : {~std::size_t{0}, ~std::size_t{0} - 15, ~std::size_t{0} - 300}) {
    EXPECT_EQ(checker_.allocate(size, 16), nullptr);
    EXPECT_EQ(checker_.allocate(size, 4096), nullptr);
  }
}

TEST_F(CheckerTest, a_freed_block_stays_away_until_the_quarantine_is_full) {
  released = 0;
  void* const p = checker_.allocate(1000, 16);
  checker_.free(p, {});
  EXPECT_EQ(released, 0U);
  for (int i = 0; i < 100; ++i) checker_.free(checker_.allocate(1000, 16), {});
  EXPECT_GT(released, 30U);
}

TEST_F(CheckerTest, what_does_not_fit_into_the_quarantine_goes_back_at_once) {
  released = 0;
  checker_.free(checker_.allocate(17 * kib, 16), {});
  EXPECT_EQ(released, 1U);
}

TEST_F(CheckerTest, a_realloc_that_fails_leaves_the_block) {
  auto* const p = static_cast<char*>(checker_.allocate(100, 16));
  p[99] = 'x';
  EXPECT_EQ(checker_.reallocate(p, ~std::size_t{0} - 300), nullptr);
  EXPECT_EQ(p[99], 'x');
  auto* const q = static_cast<char*>(checker_.reallocate(p, 200));
  EXPECT_EQ(q[99], 'x');
  checker_.free(q, {});
}

TEST(GuardedPool, takes_one_in_so_many_and_the_page_freed_first) {
  static GuardedPool pool;
  ASSERT_TRUE(pool.open(10));
  std::vector<void*> blocks;
  for (int i = 0; i < 1000; ++i) {
    if (void* const p = pool.allocate(100, 16)) blocks.push_back(p);
  }
  ASSERT_EQ(blocks.size(), 100U);
  EXPECT_EQ(pool.allocate(os::page_size() + 1, 16), nullptr);
  for (void* p : blocks) {
    EXPECT_TRUE(pool.contains(p));
    EXPECT_EQ(pool.look(p, "test").size, 100U);
    pool.free(p, "test");
  }
  for (int i = 0; i < 10 * 155; ++i) pool.allocate(100, 16);
  // 256 pages: 100 were used and freed, 155 others came before them; one more, and it is the turn of the first.
  std::vector<void*> after;
  for (int i = 0; i < 20; ++i) {
    if (void* const p = pool.allocate(100, 16)) after.push_back(p);
  }
  ASSERT_EQ(after.size(), 2U);
  EXPECT_EQ(round_down(address_of(after[1]), os::page_size()), round_down(address_of(blocks[0]), os::page_size()));
}

using CheckerDeathTest = CheckerTest;
TEST_F(CheckerDeathTest, a_handler_of_the_end_may_allocate) {
  // The pool's lock is held when it reports; a crash reporter that allocates must not wait for it.
  static GuardedPool pool;
  ASSERT_TRUE(pool.open(1));
  void* const p = pool.allocate(100, 16);
  pool.free(p, "free");
  EXPECT_EXIT(
      {
        std::signal(SIGABRT, [](int) { _exit(pool.allocate(50, 16) != nullptr ? 0 : 1); });
        alarm(20);
        pool.free(p, "free");
      },
      testing::ExitedWithCode(0), "double free");
}

TEST(GuardPages, memory_between_them_can_be_used) {
  auto* const p = static_cast<std::byte*>(os::map_between_guards(10000));
  ASSERT_NE(p, nullptr);
  for (int i = 0; i < 10000; ++i) ASSERT_EQ(p[i], std::byte{0});
  p[9999] = std::byte{1};
  const std::size_t length = round_up(10000, os::page_size());
  EXPECT_DEATH(*const_cast<volatile std::byte*>(p - 1) = std::byte{1}, "");
  EXPECT_DEATH(*const_cast<volatile std::byte*>(p + length) = std::byte{1}, "");
}

}  // namespace
}  // namespace terrace::check
