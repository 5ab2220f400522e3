// SPDX-License-Identifier: MIT OR Apache-2.0
// All subsets of levels, each way of synchronisation: every byte of the space is in one place, and the counters say so.
#include "fake.h"
#include "terrace/lab_emit.h"

#include <algorithm>
#include <cerrno>
#include <random>

namespace terrace::lab {
namespace {

constexpr std::array<std::size_t, TERRACE_LAB_LEVELS> sizes = {1024, 4096, 16384, 32768};
constexpr int core = TERRACE_LAB_CORE;

struct Subset {
  unsigned mask;
  int sync;
};
std::vector<Subset> subsets() {
  std::vector<Subset> all;
  for (unsigned mask = 0; mask < 16; ++mask) {
    all.push_back({mask, TERRACE_LAB_CAS});
    if ((mask & 1U << core) != 0) all.push_back({mask, TERRACE_LAB_RESTARTABLE});
  }
  return all;
}
terrace_lab_config config_of(const Subset& s) {
  auto chosen = sizes;
  for (unsigned l = 0; l < TERRACE_LAB_LEVELS; ++l) chosen[l] = (s.mask & 1U << l) != 0 ? sizes[l] : 0;
  return lab::config_of(chosen, s.sync);
}

class Levels : public testing::TestWithParam<Subset> {
 protected:
  OnOneCpu cpu_;
  Fake fake_{config_of(GetParam())};
};

void expect_balance(const Fake& fake, const Attached& t) {
  const terrace_lab_counters c = fake.counters();
  std::uint64_t wasted = 0;
  for (const terrace_lab_counts& l : c.level) wasted += l.wasted_bytes;
  EXPECT_EQ(sum_of(t.objects) + wasted + sum_of(fake.tails()), fake.used);
  EXPECT_EQ(wasted, sum_of(fake.filled));
}

TEST_P(Levels, every_byte_is_in_one_place) {
  Attached t(fake_);
  std::mt19937 rng(GetParam().mask + 1);
  for (int i = 0; i < 3000; ++i) {
    const std::size_t bytes = 16 * (1 + rng() % (rng() % 16 == 0 ? 200 : 12));
    const std::size_t at = rng() % 4 == 0   ? t.allocate_at(static_cast<int>(rng() % TERRACE_LAB_LEVELS), bytes)
                           : rng() % 4 == 0 ? t.allocate_core(bytes)
                                            : t.allocate(bytes);
    if (at == Attached::none) break;
    EXPECT_EQ(at % 16, 0U);
  }
  expect_balance(fake_, t);
  ListOfBytes ranges = t.objects;
  const ListOfBytes tails = fake_.tails();
  ranges.insert(ranges.end(), tails.begin(), tails.end());
  ranges.insert(ranges.end(), fake_.filled.begin(), fake_.filled.end());
  expect_covered(fake_.used, ranges);
}

TEST_P(Levels, the_source_is_asked_for_the_highest_buffer) {
  Attached t(fake_);
  t.allocate(32);
  std::size_t highest = 32;
  for (unsigned l = 0; l < TERRACE_LAB_LEVELS; ++l) highest = (GetParam().mask & 1U << l) != 0 ? sizes[l] : highest;
  EXPECT_EQ(fake_.calls, 1U);
  EXPECT_EQ(fake_.used, highest);
  for (int l = 0; l < TERRACE_LAB_LEVELS; ++l) EXPECT_EQ(fake_.counts(l).labs, (GetParam().mask & 1U << l) != 0 ? 1U : 0U);
  EXPECT_EQ(fake_.counters().direct, GetParam().mask == 0 ? 1U : 0U);
}

TEST_P(Levels, a_single_level_accounts_for_all_its_bytes) {
  Attached t(fake_);
  t.allocate_many(500, 48);
  t.allocate_many(10, 3000 / 16 * 16);
  const terrace_lab_counters c = fake_.counters();
  const ListOfBytes tails = fake_.tails();
  const unsigned mask = GetParam().mask;
  if ((mask & (mask - 1)) != 0 || mask == 0) return;
  for (const terrace_lab_counts& l : c.level) {
    if (l.labs == 0) continue;
    EXPECT_EQ(l.lab_bytes, sum_of(t.objects) - c.direct_bytes + l.wasted_bytes + sum_of(tails));
  }
}

TEST_P(Levels, retiring_fills_each_tail_once) {
  Attached t(fake_), other(fake_);
  t.allocate_many(100, 80);
  other.allocate_many(7, 16);
  ListOfBytes tails = fake_.tails();
  std::sort(tails.begin(), tails.end());
  fake_.filled.clear();
  terrace_lab_retire_all(fake_.heap);
  std::sort(fake_.filled.begin(), fake_.filled.end());
  EXPECT_EQ(fake_.filled, tails);
  EXPECT_TRUE(fake_.tails().empty());
  EXPECT_EQ(t.lab.top, nullptr);
  EXPECT_EQ(t.lab.end, nullptr);
  std::uint64_t retired = 0;
  for (const terrace_lab_counts& l : fake_.counters().level) retired += l.retired_bytes;
  EXPECT_EQ(retired, sum_of(tails));
  fake_.filled.clear();
  terrace_lab_retire_all(fake_.heap);
  EXPECT_TRUE(fake_.filled.empty());
}

TEST_P(Levels, an_emptied_space_is_used_again) {
  Attached t(fake_);
  for (int round = 0; round < 5; ++round) {
    t.objects.clear();
    for (int i = 0; i < 200000 && t.allocate(16) != Attached::none;) ++i;
    EXPECT_GT(sum_of(t.objects), fake_.limit / 2);
    terrace_lab_retire_all(fake_.heap);
    ListOfBytes ranges = t.objects;
    ranges.insert(ranges.end(), fake_.filled.begin(), fake_.filled.end());
    expect_covered(fake_.used, ranges);
    fake_.collect();
  }
  EXPECT_EQ(fake_.counters().collections, 5U);
}

TEST_P(Levels, describe_themselves) {
  Attached t(fake_);
  t.allocate(32);
  for (int l = -1; l <= TERRACE_LAB_LEVELS; ++l) {
    terrace_lab_layout layout{};
    errno = 0;
    const bool shared = l >= core && l < TERRACE_LAB_LEVELS && (GetParam().mask & 1U << l) != 0;
    ASSERT_EQ(terrace_lab_read_layout(fake_.heap, l, &layout), shared ? 0 : -1);
    EXPECT_EQ(errno, shared ? 0 : EINVAL);
    if (!shared) continue;
    EXPECT_EQ(layout.sync, l == core ? GetParam().sync : TERRACE_LAB_CAS);
    const unsigned here = terrace_lab_index(fake_.heap, l);
    ASSERT_LT(here, layout.count);
    std::uint64_t words[2];
    std::memcpy(words, layout.base + here * layout.stride, sizeof words);
    // What the level below has taken, or the object.
    std::size_t taken = 32;
    for (int below = 0; below < l; ++below)
      taken = (GetParam().mask & 1U << below) != 0 ? sizes[static_cast<std::size_t>(below)] : taken;
    EXPECT_EQ(words[1] - words[0], sizes[static_cast<std::size_t>(l)] - taken);
  }
  for (int l = 0; l < TERRACE_LAB_LEVELS; ++l) {
    const std::size_t size = (GetParam().mask & 1U << l) != 0 ? sizes[static_cast<std::size_t>(l)] : 0;
    EXPECT_EQ(terrace_lab_size(fake_.heap, &t.lab, l), size);
    if (l == TERRACE_LAB_THREAD) continue;
    EXPECT_EQ(terrace_lab_size(fake_.heap, nullptr, l), size);
  }
}

std::string name_of(const testing::TestParamInfo<Subset>& info) {
  const char* const letters = "tcpn";
  std::string name;
  for (unsigned l = 0; l < TERRACE_LAB_LEVELS; ++l) {
    if ((info.param.mask & 1U << l) != 0) name += letters[l];
  }
  return (name.empty() ? "none" : name) + (info.param.sync == TERRACE_LAB_RESTARTABLE ? "_restartable" : "");
}
INSTANTIATE_TEST_SUITE_P(All, Levels, testing::ValuesIn(subsets()), name_of);

}  // namespace
}  // namespace terrace::lab
