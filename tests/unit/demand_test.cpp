// SPDX-License-Identifier: MIT OR Apache-2.0
#include "span/demand.h"

#include <gtest/gtest.h>

namespace terrace::span {
namespace {

TEST(Demand, is_what_was_in_use_and_is_free_now) {
  Demand d;
  EXPECT_EQ(d.freed_lately(10 * mib), 0U);
  EXPECT_EQ(d.freed_lately(4 * mib), 6 * mib);
  EXPECT_EQ(d.freed_lately(9 * mib), 1 * mib);
  EXPECT_EQ(d.peak(), 10 * mib);
}

TEST(Demand, is_bounded) {
  Demand d;
  d.freed_lately(1000 * mib);
  EXPECT_EQ(d.freed_lately(100 * mib), most_freed_lately);
}

TEST(Demand, forgets_what_is_said_not_to_be_needed) {
  Demand d;
  d.freed_lately(20 * mib);
  d.forget(12 * mib);
  EXPECT_EQ(d.freed_lately(4 * mib), 4 * mib);
  d.forget(30 * mib);
  EXPECT_EQ(d.freed_lately(4 * mib), 0U);
}

TEST(Demand, rests_when_nothing_was_taken_for_some_time) {
  Demand d;
  d.on_take(1000);
  EXPECT_FALSE(d.rests(1000));
  EXPECT_FALSE(d.rests(1000 + rest_ms));
  EXPECT_TRUE(d.rests(1001 + rest_ms));
  d.on_take(1001 + rest_ms);
  EXPECT_FALSE(d.rests(1001 + rest_ms));
}

TEST(Demand, fades_down_to_what_is_in_use) {
  Demand d;
  d.freed_lately(20 * mib);
  d.fade(4 * mib);
  EXPECT_EQ(d.freed_lately(4 * mib), 12 * mib);
  for (int tick = 1; tick < 20; ++tick) d.fade(4 * mib);
  EXPECT_LT(d.freed_lately(4 * mib), mib / 8);
  d.fade(30 * mib);  // more is in use than was seen
  EXPECT_EQ(d.freed_lately(30 * mib), 0U);
}

}  // namespace
}  // namespace terrace::span
