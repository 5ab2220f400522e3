// SPDX-License-Identifier: MIT OR Apache-2.0
// A span level of its own for each test; its invariants hold at the end.
#pragma once

#include "span/spans.h"

#include <gtest/gtest.h>
#include <vector>

namespace terrace::span {

class SpansTest : public testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(spans_->open()); }
  void TearDown() override { EXPECT_STREQ(spans_->check_invariants(), nullptr); }
  std::byte* memory(GranuleIndex i) { return spans_->window().address(i); }
  // Read as another thread's, without the lock: it may change at any moment, and that is what the test waits for.
#if defined(TERRACE_SANITIZED)
  __attribute__((no_sanitize("thread")))
#endif
  bool
  is_purging(GranuleIndex i) {
    return *const_cast<const volatile State*>(&spans_->window().record(i).state) == State::purging;
  }
  // Not on the stack, and never destroyed: a window is for the life of a process.
  Spans* spans_ = kept().emplace_back(new Spans);
  static std::vector<Spans*>& kept() {
    static auto* const all = new std::vector<Spans*>;
    return *all;
  }
};

}  // namespace terrace::span
