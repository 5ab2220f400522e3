// SPDX-License-Identifier: MIT OR Apache-2.0
#include "span/retention.h"

#include "base/types.h"

#include <gtest/gtest.h>

namespace terrace::span {
namespace {

constexpr Retention::Rule rule{.floor = 100, .small = 1000, .share = 10, .ceiling = 5000};

TEST(Retention, is_the_floor_or_the_share_at_first) {
  Retention r(rule);
  EXPECT_EQ(r.bound(0), 100U);
  EXPECT_EQ(r.bound(999), 100U);
  EXPECT_EQ(r.bound(2000), 200U);
}

TEST(Retention, rises_by_what_was_given_back_and_needed_again) {
  Retention r(rule);
  r.given_back(1000);
  EXPECT_EQ(r.bound(0), 100U);
  r.needed(300);
  EXPECT_EQ(r.bound(0), 300U);
  r.needed(5000);  // no more than was given back
  EXPECT_EQ(r.bound(0), 1000U);
  r.needed(5000);
  EXPECT_EQ(r.bound(0), 1000U);
}

TEST(Retention, remembers_for_a_while_what_was_in_use) {
  Retention r(rule);
  EXPECT_EQ(r.bound(5000), 500U);
  EXPECT_EQ(r.bound(0), 500U);
  r.fade();
  EXPECT_EQ(r.bound(0), 375U);
  for (int i = 0; i < 100; ++i) r.fade();
  EXPECT_EQ(r.bound(0), 100U);
}

TEST(Retention, growth_is_no_regret) {
  Retention r(rule);
  r.needed(4000);
  EXPECT_EQ(r.bound(0), 100U);
}

TEST(Retention, rises_by_less_beyond_a_ceiling_of_the_callers) {
  constexpr std::uint64_t part = repeated_regret;
  Retention r(rule);
  r.given_back(100 * part);
  r.needed(30 * part, 1, 20 * part);
  EXPECT_EQ(r.bound(0), 20 * part + 10);
  r.needed(20 * part);
  EXPECT_EQ(r.bound(0), 40 * part + 10);
  r.needed(5 * part, 1, 20 * part);
  EXPECT_EQ(r.bound(0), 40 * part + 15) << "others raised it above the ceiling";
  r.given_back(10000 * part);
  r.needed(10000 * part, 1, 20 * part);
  EXPECT_EQ(r.bound(0), 5000U) << "its own ceiling";
}

TEST(Retention, what_was_given_back_long_ago_is_no_regret) {
  Retention r(rule);
  r.given_back(1000);
  r.fade();
  r.given_back(500);
  r.fade();  // the first are gone, the second not
  r.needed(5000);
  EXPECT_EQ(r.bound(0), 500U);
}

TEST(Retention, may_have_to_be_regretted_several_times) {
  Retention r(rule);
  for (unsigned i = 1; i <= 8; ++i) {
    r.given_back(1000);
    r.needed(1000, 8);
    EXPECT_EQ(r.bound(0), i * 125U);
  }
}

TEST(Retention, has_a_lower_ceiling_for_what_counts_in_part) {
  Retention r({.floor = 100, .small = 1000, .share = 10, .ceiling = 256 * mib});
  r.given_back(200 * mib);
  r.needed(8 * ceiling_of_shares, 8);
  EXPECT_EQ(r.bound(0), ceiling_of_shares);
  r.needed(20 * mib);
  EXPECT_EQ(r.bound(0), ceiling_of_shares + 20 * mib);
  r.needed(64 * mib, 8);  // beyond it a part of an eighth counts
  EXPECT_EQ(r.bound(0), ceiling_of_shares + 20 * mib + 8 * mib / repeated_regret);
}

TEST(Retention, has_a_ceiling_and_fades) {
  Retention r(rule);
  r.given_back(100000);
  r.needed(100000);
  EXPECT_EQ(r.bound(0), 5000U);
  r.fade();
  EXPECT_EQ(r.bound(0), 3750U);
  for (int i = 0; i < 100; ++i) r.fade();
  EXPECT_EQ(r.bound(0), 100U);
}

}  // namespace
}  // namespace terrace::span
