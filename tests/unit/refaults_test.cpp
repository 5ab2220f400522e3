// SPDX-License-Identifier: MIT OR Apache-2.0
#include "span/refaults.h"

#include <gtest/gtest.h>

namespace terrace::span {
namespace {

TEST(Refaults, is_of_what_was_given_back_and_needed_again) {
  Refaults r(5000);
  r.on_purge(1000);
  EXPECT_EQ(r.allowance(), 0U);
  r.on_refault(300);
  EXPECT_EQ(r.allowance(), 300U);
  r.on_refault(5000);  // no more than was given back
  EXPECT_EQ(r.allowance(), 1000U);
  r.on_refault(5000);
  EXPECT_EQ(r.allowance(), 1000U);
}

TEST(Refaults, is_not_of_growth) {
  Refaults r(5000);
  r.on_refault(4000);
  EXPECT_EQ(r.allowance(), 0U);
}

TEST(Refaults, is_not_of_what_was_given_back_long_ago) {
  Refaults r(5000);
  r.on_purge(1000);
  r.fade();
  r.on_purge(500);
  r.fade();  // the first are gone, the second not
  r.on_refault(5000);
  EXPECT_EQ(r.allowance(), 500U);
}

TEST(Refaults, has_a_ceiling_and_fades) {
  Refaults r(5000);
  r.on_purge(100000);
  r.on_refault(100000);
  EXPECT_EQ(r.allowance(), 5000U);
  r.fade();
  EXPECT_EQ(r.allowance(), 3750U);
  for (int i = 0; i < 100; ++i) r.fade();
  EXPECT_LT(r.allowance(), 4U);
}

}  // namespace
}  // namespace terrace::span
