// SPDX-License-Identifier: MIT OR Apache-2.0
#include "span/regret.h"

#include <gtest/gtest.h>

namespace terrace::span {
namespace {

TEST(Regret, is_of_what_was_given_back_and_needed_again) {
  Regret r(5000);
  r.given_back(1000);
  EXPECT_EQ(r.allowance(), 0U);
  r.needed(300);
  EXPECT_EQ(r.allowance(), 300U);
  r.needed(5000);  // no more than was given back
  EXPECT_EQ(r.allowance(), 1000U);
  r.needed(5000);
  EXPECT_EQ(r.allowance(), 1000U);
}

TEST(Regret, is_not_of_growth) {
  Regret r(5000);
  r.needed(4000);
  EXPECT_EQ(r.allowance(), 0U);
}

TEST(Regret, is_not_of_what_was_given_back_long_ago) {
  Regret r(5000);
  r.given_back(1000);
  r.fade();
  r.given_back(500);
  r.fade();  // the first are gone, the second not
  r.needed(5000);
  EXPECT_EQ(r.allowance(), 500U);
}

TEST(Regret, has_a_ceiling_and_fades) {
  Regret r(5000);
  r.given_back(100000);
  r.needed(100000);
  EXPECT_EQ(r.allowance(), 5000U);
  r.fade();
  EXPECT_EQ(r.allowance(), 3750U);
  for (int i = 0; i < 100; ++i) r.fade();
  EXPECT_LT(r.allowance(), 4U);
}

}  // namespace
}  // namespace terrace::span
