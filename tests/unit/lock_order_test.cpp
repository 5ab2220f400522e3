// SPDX-License-Identifier: MIT OR Apache-2.0
// The order of locks is checked where there are assertions; without them nothing is, and a mutex is the same word.
#include "os/lock_order.h"

#include "os/mutex.h"

#include <gtest/gtest.h>
#include <string>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace terrace::os {
namespace {

constexpr char complaint[] = "terrace: internal error: lock order: ";

class LockOrderTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!assertions) GTEST_SKIP() << "a build without assertions";
  }
  RankedMutex<Rank::maintenance> outer_;
  RankedMutex<Rank::slabs> classes_[2];
  RankedMutex<Rank::spans> inner_;
};
using LockOrderDeathTest = LockOrderTest;

TEST_F(LockOrderTest, outer_locks_come_first_and_any_may_be_unlocked_first) {
  outer_.lock();
  classes_[0].lock();
  inner_.lock();
  classes_[0].unlock();
  outer_.unlock();
  inner_.unlock();
  EXPECT_FALSE(Mutex::holds_any());
  const LockGuard again(outer_);
  EXPECT_TRUE(LockOrder::holds(Rank::maintenance));
  EXPECT_FALSE(LockOrder::holds_within(Rank::maintenance));
}

TEST_F(LockOrderDeathTest, waiting_for_an_outer_lock_is_reported) {
  const LockGuard guard(inner_);
  EXPECT_DEATH(outer_.lock(), std::string(complaint) + "waits for maintenance and holds the spans\n");
}

TEST_F(LockOrderDeathTest, waiting_for_the_own_lock_is_reported) {
  const LockGuard guard(outer_);
  EXPECT_DEATH(outer_.lock(), std::string(complaint) + "waits for maintenance and holds maintenance\n");
}

TEST_F(LockOrderDeathTest, only_who_takes_all_takes_two_of_one_rank) {
  {
    const LockOrder::TakesAll all;
    classes_[1].lock();
    classes_[0].lock();
  }
  classes_[0].unlock();
  classes_[1].unlock();
  const LockGuard guard(classes_[0]);
  EXPECT_DEATH(classes_[1].lock(), std::string(complaint) + "waits for a class of slabs and holds a class of slabs\n");
}

TEST_F(LockOrderDeathTest, an_attempt_may_be_made_in_any_order_and_counts_in_what_follows) {
  const LockGuard guard(inner_);
  ASSERT_TRUE(outer_.try_lock());
  EXPECT_FALSE(outer_.try_lock());
  EXPECT_DEATH(classes_[0].lock(), std::string(complaint) + "waits for a class of slabs and holds the spans\n");
  outer_.unlock();
  ASSERT_TRUE(classes_[0].try_lock());
  EXPECT_DEATH(outer_.lock(), complaint);
  classes_[0].unlock();
}

TEST_F(LockOrderDeathTest, unlocking_what_is_not_held_is_reported) {
  EXPECT_DEATH(outer_.unlock(), std::string(complaint) + "unlocks what it does not hold\n");
}

TEST_F(LockOrderTest, each_thread_has_its_own) {
  const LockGuard guard(inner_);
  std::thread([this] {
    const LockGuard own(outer_);
    EXPECT_FALSE(LockOrder::holds(Rank::spans));
  }).join();
}

TEST_F(LockOrderTest, a_thread_that_passes_all_locks_is_not_looked_at) {
  const LockGuard guard(inner_);
  Mutex::set_holds_all(true);
  outer_.lock();
  EXPECT_TRUE(LockOrder::holds(Rank::slabs));
  EXPECT_FALSE(LockOrder::holds_within(Rank::maintenance));
  outer_.unlock();
  Mutex::set_holds_all(false);
}

TEST_F(LockOrderTest, a_child_of_fork_holds_what_it_has_not_reset) {
  outer_.lock();
  inner_.lock();
  const pid_t child = fork();
  if (child == 0) {
    inner_.reset_after_fork();
    const bool outer_alone = LockOrder::holds(Rank::maintenance) && !LockOrder::holds(Rank::spans);
    classes_[0].lock();
    _exit(outer_alone ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  inner_.unlock();
  outer_.unlock();
}

}  // namespace
}  // namespace terrace::os
