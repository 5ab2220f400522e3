// SPDX-License-Identifier: MIT OR Apache-2.0
#include "arch/chain.h"
#include "base/bits.h"
#include "base/format.h"

#include <gtest/gtest.h>
#include <string>

namespace terrace {
namespace {

std::string written(auto write) {
  char buf[256];
  Writer w(buf, sizeof buf);
  write(w);
  return std::string(w.written());
}

TEST(Writer, writes_numbers_in_both_bases) {
  EXPECT_EQ(written([](Writer& w) {
              w.decimal(0).put(' ');
              w.decimal(~0ULL).put(' ');
              w.hex(0xdeadbeef);
            }),
            "0 18446744073709551615 deadbeef");
  EXPECT_EQ(written([](Writer& w) { w.decimal(42, 5).padded("ab", 4); }), "   42  ab");
}

TEST(Writer, escapes_whatever_json_does_not_allow) {
  EXPECT_EQ(written([](Writer& w) { w.json_string("a\"b\\c\n\x01\xff"); }), "\"a\\\"b\\\\c\\u000a\\u0001\\u00ff\"");
}

TEST(Writer, counts_what_does_not_fit_and_writes_nothing_behind_its_buffer) {
  char buf[8] = {'x', 'x', 'x', 'x', 'x', 'x', 'x', 'x'};
  Writer w(buf, 4);
  w.text("123456");
  EXPECT_EQ(w.length(), 6U);
  EXPECT_EQ(w.written(), "1234");
  w.terminate();
  EXPECT_EQ(buf[3], '\0');
  EXPECT_EQ(buf[4], 'x');
}

TEST(Bits, rounding) {
  EXPECT_EQ(round_up(1, 16), 16U);
  EXPECT_EQ(round_up(16, 16), 16U);
  EXPECT_EQ(round_down(31, 16), 16U);
  EXPECT_FALSE(is_power_of_two(0));
  EXPECT_TRUE(is_power_of_two(4096));
}

TEST(Chain, knows_its_length_and_its_first_block) {
  alignas(16) std::uint64_t a[2], b[2];
  Word w = chain::pushed(empty_word, a);
  w = chain::pushed(w, b);
  EXPECT_EQ(chain::count(w), 2U);
  EXPECT_EQ(chain::first(w), b);
  EXPECT_TRUE(chain::intact(w));
  EXPECT_EQ(chain::first(chain::rest(w)), a);
  EXPECT_EQ(chain::rest(chain::rest(w)), empty_word);
}

TEST(Chain, a_written_block_breaks_it) {
  alignas(16) std::uint64_t a[2], b[2];
  const Word w = chain::pushed(chain::pushed(empty_word, a), b);
  b[0] = 0x4141414141414141;
  EXPECT_FALSE(chain::intact(w));
  b[0] = 0;
  EXPECT_FALSE(chain::intact(w));
}

TEST(Chain, a_stopped_word_looks_empty_and_full) {
  EXPECT_FALSE(names_something(stopped_word));
  EXPECT_GT(chain::count(stopped_word), chain::longest);
}

}  // namespace
}  // namespace terrace
