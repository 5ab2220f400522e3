// SPDX-License-Identifier: MIT OR Apache-2.0
// Whom a request asks, and whom a payload is given to.
#include "level/levels.h"

#include <gtest/gtest.h>
#include <string>

namespace terrace::level {
namespace {

struct Pile {
  int things = 0;
  explicit operator bool() const { return things != 0; }
};
struct Request {
  int least;
  std::string asked = {};
};

/// Has so many things at most.
struct Store {
  char name;
  int has = 0, room = 0;
  Pile take(const Locality& here, Request& r) {
    r.asked += name;
    if (has < r.least || here.processor != 7) return {};
    has -= r.least;
    return {r.least};
  }
  bool give(const Locality& /*here*/, Pile& pile) {
    const int fits = pile.things < room - has ? pile.things : room - has;
    has += fits;
    pile.things -= fits;
    return pile.things == 0;
  }
};

class LevelsTest : public testing::Test {
 protected:
  Store near_{'n', 1, 2}, middle_{'m', 3, 3}, far_{'f', 100, 1000};
  Levels<Store, Store, Store> levels_{near_, middle_, far_};
  const Locality here_{.slot = 0, .cpu = {}, .processor = 7, .node = 0};
};

TEST_F(LevelsTest, the_nearest_that_has_enough_serves_and_nobody_is_asked_after_it) {
  for (const auto& [least, asked] : {std::pair{1, "n"}, {1, "nm"}, {2, "nm"}, {1, "nmf"}, {101, "nmf"}}) {
    Request r{least};
    const auto got = levels_.take<Pile>(here_, r);
    EXPECT_EQ(r.asked, asked);
    EXPECT_EQ(got.things, least == 101 ? 0 : least);
  }
}

TEST_F(LevelsTest, a_request_may_begin_further_up_and_everybody_hears_where_it_comes_from) {
  Request r{1};
  EXPECT_TRUE(levels_.take<Pile>(here_, r, 1));
  EXPECT_EQ(r.asked, "m");
  Request last{1};
  EXPECT_TRUE(levels_.take<Pile>(here_, last, 2));
  EXPECT_EQ(last.asked, "f");
  Request nowhere{1};
  EXPECT_FALSE(levels_.take<Pile>({}, nowhere)) << "another processor";
  EXPECT_EQ(nowhere.asked, "nmf");
}

TEST_F(LevelsTest, what_a_level_does_not_accept_the_next_one_gets) {
  levels_.give(here_, Pile{1});
  EXPECT_EQ(near_.has, 2);
  middle_.has = 1;
  levels_.give(here_, Pile{6});
  EXPECT_EQ(near_.has, 2);
  EXPECT_EQ(middle_.has, 3);
  EXPECT_EQ(far_.has, 104);
}

}  // namespace
}  // namespace terrace::level
