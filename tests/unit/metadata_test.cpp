// SPDX-License-Identifier: MIT OR Apache-2.0
#include "os/metadata.h"

#include "span/spans.h"
#include "terrace/stats.h"

#include <gtest/gtest.h>
#include <string>
#include <sys/mman.h>
#include <vector>

namespace terrace::os {
namespace {

std::uint64_t total() {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < metadata_count; ++i) sum += metadata_bytes(static_cast<Metadata>(i));
  return sum;
}

std::size_t resident_pages(void* p, std::size_t bytes) {
  std::vector<unsigned char> pages(round_up(bytes, page_size()) / page_size());
  EXPECT_EQ(mincore(p, bytes, pages.data()), 0);
  std::size_t n = 0;
  for (const unsigned char page : pages) n += page & 1;
  return n;
}

TEST(Metadata, is_zeroed_and_begins_at_a_page_and_is_counted_by_purpose) {
  struct Entry {
    std::uint64_t words[25];
  };
  const std::uint64_t levels = metadata_bytes(Metadata::levels), before = total();
  auto* const p = map_metadata<Entry>(Metadata::levels, 1000);
  ASSERT_NE(p, nullptr);
  EXPECT_EQ(address_of(p) % page_size(), 0U);
  for (std::size_t i = 0; i < 1000; ++i) {
    for (const std::uint64_t word : p[i].words) ASSERT_EQ(word, 0U);
  }
  const std::uint64_t bytes = round_up(1000 * sizeof(Entry), page_size());
  EXPECT_EQ(metadata_bytes(Metadata::levels) - levels, bytes);
  EXPECT_EQ(total() - before, bytes);
}

TEST(Metadata, is_resident_where_it_was_touched) {
  const std::size_t bytes = 100 * page_size();
  auto* const p = map_metadata<std::byte>(Metadata::levels, bytes);
  ASSERT_NE(p, nullptr);
  EXPECT_EQ(resident_pages(p, bytes), 0U);
  p[50 * page_size()] = std::byte{1};
  EXPECT_LT(resident_pages(p, bytes), 50U);  // one, or what a system that maps several pages at once makes of it
}

TEST(Metadata, what_can_not_be_had_is_null_and_not_counted) {
  const std::uint64_t before = total();
  EXPECT_EQ(map_metadata<std::uint64_t>(Metadata::levels, ~std::size_t{0} / 8 + 2), nullptr);  // 8 bytes, modulo 2^64
  for (const Metadata purpose : {Metadata::levels, Metadata::checks}) {
    EXPECT_EQ(map_metadata<std::byte>(purpose, ~std::size_t{0}), nullptr);
    EXPECT_EQ(map_metadata<std::byte>(purpose, ~std::size_t{0} / 2), nullptr);
  }
  EXPECT_EQ(total(), before);
}

TEST(MetadataDeathTest, of_checks_lies_between_guards) {
  const std::size_t length = round_up(10000, page_size());
  auto* const p = map_metadata<std::byte>(Metadata::checks, 10000);
  ASSERT_NE(p, nullptr);
  p[length - 1] = std::byte{1};
  EXPECT_DEATH(*const_cast<volatile std::byte*>(p - 1) = std::byte{1}, "");
  EXPECT_DEATH(*const_cast<volatile std::byte*>(p + length) = std::byte{1}, "");
}

TEST(Metadata, of_the_window_is_the_map_and_the_records_below_the_frontier) {
  static auto* const spans = new span::Spans;
  const std::uint64_t before = metadata_bytes(Metadata::spans);
  ASSERT_TRUE(spans->open());
  for (const std::uint32_t granules : {1U, 1000U}) {
    ASSERT_NE(spans->take(granules, span::State::taken).first, span::no_granule);
    const std::size_t below = spans->window().extent() >> span::granule_shift;
    EXPECT_EQ(metadata_bytes(Metadata::spans) - before,
              round_up(below, page_size()) + round_up(below * sizeof(span::Record), page_size()));
  }
}

TEST(Metadata, is_told_by_the_statistics) {
  std::vector<char> text(256 * kib);
  ASSERT_LT(terrace_stats_json(text.data(), text.size()), text.size());
  const std::string json(text.data());
  EXPECT_NE(json.find("\"metadata\":" + std::to_string(total()) + ","), std::string::npos);
  EXPECT_NE(json.find("\"metadata_spans\":" + std::to_string(metadata_bytes(Metadata::spans)) + ","), std::string::npos);
  EXPECT_NE(json.find("\"metadata_checks\":" + std::to_string(metadata_bytes(Metadata::checks)) + ","), std::string::npos);
}

TEST(Scratch, is_zeroed_and_gone_afterwards) {
  struct Long {
    std::uint64_t words[3000];
  };
  void* where = nullptr;
  {
    const Scratch<Long> scratch;
    ASSERT_NE(scratch.get(), nullptr);
    for (std::uint64_t& word : scratch.get()->words) {
      ASSERT_EQ(word, 0U);
      word = 1;
    }
    where = scratch.get();
  }
  EXPECT_EQ(look_at(where, page_size()), Mapped::yes) << "nothing is mapped there any more";
}

}  // namespace
}  // namespace terrace::os
