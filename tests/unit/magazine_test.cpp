// SPDX-License-Identifier: MIT OR Apache-2.0
#include "level/magazine.h"

#include "heap/classes/transfer_sizes.h"
#include "heap/levels/duplicates.h"
#include "heap/slabs/magazines.h"

#include <gtest/gtest.h>
#include <vector>

namespace terrace::level {
namespace {

struct alignas(2048) Memory {
  std::uint64_t places[256];
};
void* block(std::uint64_t n) { return reinterpret_cast<void*>(0x7f0000000000 + 48 * n); }
std::uint64_t number(const void* p) { return reinterpret_cast<std::uintptr_t>(p); }

class MagazineTest : public testing::TestWithParam<unsigned> {
 protected:
  void SetUp() override {
    for (std::uint64_t& place : memory_.places) place = 0x4141414141414141;  // whatever it was before
  }
  // What pop_round and push_round look at.
  static std::uint64_t below(Word w) { return top_round(w); }
  static std::uint64_t at(Word w) { return top_round(w + sizeof(std::uint64_t)); }
  unsigned kind() const { return GetParam(); }

  Memory memory_;
};

TEST_P(MagazineTest, is_empty_and_full_as_long_as_it_may_hold_nothing) {
  const Magazine m = Magazine::make(&memory_, kind());
  EXPECT_EQ(m.count(), 0U);
  EXPECT_EQ(m.limit(), 0U);
  EXPECT_FALSE(m.has_room());
  EXPECT_EQ(below(m.word()), 0U);
  EXPECT_EQ(at(m.word()), 0U);
}

TEST_P(MagazineTest, holds_as_many_rounds_as_it_may_between_two_zeros) {
  Magazine m = Magazine::make(&memory_, kind());
  for (const unsigned limit : {1U, 5U, magazine_capacity(kind())}) {
    m.set_limit(limit);
    while (m.has_room()) m.push(block(m.count()));
    EXPECT_EQ(m.count(), limit);
    EXPECT_EQ(at(m.word()), 0U) << "full at " << limit;
    EXPECT_EQ(below(m.word()), number(block(limit - 1)));
  }
  for (unsigned left = m.count(); left != 0; --left) EXPECT_EQ(m.pop(), block(left - 1));
  EXPECT_EQ(below(m.word()), 0U);
  EXPECT_NE(at(m.word()), 0U) << "empty, and has room";
}

TEST_P(MagazineTest, keeps_what_it_holds_when_it_may_hold_less) {
  Magazine m = Magazine::make(&memory_, kind());
  m.set_limit(8);
  for (unsigned i = 0; i < 6; ++i) m.push(block(i));
  m.set_limit(2);
  EXPECT_EQ(m.limit(), 6U);
  EXPECT_EQ(at(m.word()), 0U);
  while (m.count() > 1) m.pop();
  m.set_limit(2);
  m.push(block(9));
  EXPECT_EQ(at(m.word()), 0U);
  m.set_limit(10);
  EXPECT_NE(at(m.word()), 0U);
  while (m.has_room()) m.push(block(1));
  EXPECT_EQ(m.count(), 10U);
}

TEST_P(MagazineTest, is_found_by_its_word_however_full_it_is) {
  Magazine m = Magazine::make(&memory_, kind());
  m.set_limit(magazine_capacity(kind()));
  for (;;) {
    EXPECT_EQ(Magazine::of_word(m.word(), kind()), m);
    EXPECT_EQ(Magazine::of_word(m.word(), kind()).memory(), &memory_);
    if (!m.has_room()) break;
    m.push(block(m.count()));
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, MagazineTest, testing::Range(0U, magazine_kinds));

TEST(Magazine, words_without_one_are_empty_and_full) {
  for (const Word w : {empty_word, Word{stopped_word}}) {
    EXPECT_FALSE(names_something(w));
    EXPECT_FALSE(Magazine::of_word(w, 0));
    EXPECT_EQ(top_round(w), 0U);
    EXPECT_EQ(top_round(w + sizeof(std::uint64_t)), 0U);
  }
}

TEST(Magazine, kinds_are_the_smallest_that_suffice) {
  for (unsigned rounds = 1; rounds <= largest_magazine; ++rounds) {
    const unsigned kind = magazine_kind_for(rounds);
    EXPECT_GE(magazine_capacity(kind), rounds);
    EXPECT_TRUE(kind == 0 || magazine_capacity(kind - 1) < rounds);
  }
}

heap::RoundsByHash tables[2];

// By tables, and without any.
const void* duplicate_in(Magazine m) {
  const void* const found = heap::duplicate_in(m, tables, 2, 1);
  EXPECT_EQ(heap::duplicate_in(m, tables, 0, 0), found);
  return found;
}

TEST(Duplicates, a_block_that_is_there_twice_is_found_wherever_it_is) {
  Memory memory;
  const unsigned kind = magazine_kinds - 1;
  for (unsigned first = 0; first < largest_magazine; first += 36) {
    for (unsigned second = first + 1; second < largest_magazine; second += 31) {
      Magazine m = Magazine::make(&memory, kind);
      m.set_limit(largest_magazine);
      while (m.has_room()) m.push(block(m.count() == second ? first : m.count()));
      EXPECT_EQ(duplicate_in(m), block(first)) << first << " and " << second;
    }
  }
}

TEST(Duplicates, are_found_in_rounds_that_rise_fall_or_neither_however_many_there_are) {
  Memory memory;
  for (unsigned n = 2; n <= 40; ++n) {
    for (unsigned first = 0; first < n; ++first) {
      for (unsigned second = first; second < n; ++second) {  // first == second: none
        for (const unsigned order : {0, 1, 2}) {
          Magazine m = Magazine::make(&memory, magazine_kinds - 1);
          m.set_limit(n);
          const auto nth = [&](unsigned i) { return block(order == 0 ? i : order == 1 ? n - i : i * 7 % 41); };
          while (m.has_room()) m.push(nth(m.count() == second ? first : m.count()));
          ASSERT_EQ(duplicate_in(m), first == second ? nullptr : nth(first)) << n << ": " << first << ", " << second;
        }
      }
    }
  }
}

TEST(Duplicates, are_found_while_others_search_whoever_has_the_chains) {
  Memory memory;
  Magazine m = Magazine::make(&memory, magazine_kinds - 1);
  m.set_limit(100);
  while (m.has_room()) m.push(block(m.count() == 50 ? 20 : m.count() * 7 % 101));
  const int somebody = 0;
  for (heap::RoundsByHash& c : tables) {
    c.user.store(&somebody, std::memory_order_relaxed);
    EXPECT_EQ(duplicate_in(m), block(20));
  }
  for (heap::RoundsByHash& c : tables) {
    EXPECT_EQ(c.user.load(std::memory_order_relaxed), &somebody);
    c.reset_after_fork();
    EXPECT_EQ(c.user.load(std::memory_order_relaxed), nullptr);
  }
}

TEST(Duplicates, of_no_or_one_round_there_are_none) {
  Memory memory;
  Magazine m = Magazine::make(&memory, magazine_kinds - 1);
  m.set_limit(2);
  EXPECT_EQ(duplicate_in(m), nullptr);
  m.push(block(1));
  EXPECT_EQ(duplicate_in(m), nullptr);
}

TEST(Duplicates, different_blocks_are_none) {
  Memory memory;
  for (std::uint64_t stride : {1, 2, 64, 4096, 65536}) {
    Magazine m = Magazine::make(&memory, magazine_kinds - 1);
    m.set_limit(largest_magazine);
    while (m.has_room()) m.push(block(m.count() * stride));
    EXPECT_EQ(duplicate_in(m), nullptr) << stride;
  }
}

TEST(TransferSizes, caps_begin_small_and_fit_into_a_magazine) {
  for (std::size_t i = 1; i < heap::class_count; ++i) {
    const SizeClass c{static_cast<std::uint8_t>(i)};
    EXPECT_GE(heap::smallest_load(c), 1U);
    EXPECT_LE(heap::smallest_load(c), heap::first_cap(c));
    EXPECT_LE(heap::first_cap(c), heap::max_cap(c));
    EXPECT_LE(heap::max_cap(c), largest_magazine);
  }
}

}  // namespace
}  // namespace terrace::level
