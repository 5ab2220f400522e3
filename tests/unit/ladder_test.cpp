// SPDX-License-Identifier: MIT OR Apache-2.0
#include "percpu/ladder.h"

#include <gtest/gtest.h>
#include <string>

namespace terrace::percpu {
namespace {

Facts best() {
  Facts f;
  f.area = {.owner = os::RseqOwner::libc, .offset = -2080, .feature_size = 28};
  f.kernel = 6018044;
  f.has_barrier = true;
  f.has_cpu_number = true;
  return f;
}

#if !defined(TERRACE_SANITIZED)
TEST(Ladder, takes_the_highest_rung_there_is) {
  const Ladder l = choose(best(), nullptr);
  EXPECT_EQ(l.rung, Rung::mm_cid);
  EXPECT_EQ(l.area.slot, -2080 + 24);
  EXPECT_EQ(l.area.critical_section, -2080 + 8);
  EXPECT_FALSE(l.area_is_ours);
}

TEST(Ladder, a_kernel_without_mm_cid_gives_cpu_id) {
  Facts f = best();
  f.area.feature_size = 20;
  const Ladder l = choose(f, nullptr);
  EXPECT_EQ(l.rung, Rung::cpu_id);
  EXPECT_EQ(l.area.slot, -2080 + 4);
}

TEST(Ladder, can_be_forced_down_but_not_to_what_is_impossible) {
  const Rung wish = Rung::cpu_id;
  EXPECT_EQ(choose(best(), &wish).rung, Rung::cpu_id);
  Facts f = best();
  f.area.owner = os::RseqOwner::none;
  testing::internal::CaptureStderr();
  EXPECT_EQ(choose(f, &wish).rung, Rung::getcpu);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "terrace: TERRACE_RUNG cpu_id: not possible here, ignored\n");
}

TEST(Ladder, a_broken_kernel_is_avoided_unless_forced) {
  Facts f = best();
  f.broken_kernel = true;
  EXPECT_EQ(choose(f, nullptr).rung, Rung::getcpu);
  const Rung wish = Rung::mm_cid;
  EXPECT_EQ(choose(f, &wish).rung, Rung::mm_cid);
}
TEST(Ladder, kernels_that_keep_sections_in_system_calls_are_known) {
  for (const auto& [kernel, ends] :
       {std::pair{6001000U, true}, {6018999U, true}, {6019000U, false}, {7002013U, false}, {0U, false}}) {
    Facts f = best();
    f.kernel = kernel;
    EXPECT_EQ(choose(f, nullptr).valid_after_calls, ends) << kernel;
  }
  const Rung getcpu = Rung::getcpu;  // its transactions are not the kernel's
  Facts f = best();
  f.kernel = 6019000;
  EXPECT_TRUE(choose(f, &getcpu).valid_after_calls);
}

TEST(Ladder, rseq_that_libc_has_left_alone_is_not_taken) {
  Facts f = best();
  f.area.owner = os::RseqOwner::left_alone;
  const Ladder l = choose(f, nullptr);
  EXPECT_EQ(l.rung, Rung::getcpu);
  EXPECT_NE(std::string(l.reason).find("glibc.pthread.rseq=0"), std::string::npos);
  f.area.owner = os::RseqOwner::ours;  // asked for: observe() has registered
  const Rung wish = Rung::mm_cid;
  EXPECT_TRUE(choose(f, &wish).area_is_ours);
}

TEST(Ladder, a_wish_for_a_rung_without_sequences_asks_for_nothing) {
  const Rung wish = Rung::getcpu;
  const Facts f = observe(&wish);
  EXPECT_EQ(f.area.owner, os::RseqOwner::none);
  EXPECT_FALSE(f.has_barrier);
}
#else
TEST(Ladder, builds_with_sanitizers_have_no_sequences) { EXPECT_EQ(choose(best(), nullptr).rung, Rung::getcpu); }
#endif

TEST(Ladder, without_membarrier_or_rseq_there_are_no_sequences) {
  Facts f = best();
  f.has_barrier = false;
  EXPECT_EQ(choose(f, nullptr).rung, Rung::getcpu);
  f = best();
  f.area.owner = os::RseqOwner::none;
  EXPECT_EQ(choose(f, nullptr).rung, Rung::getcpu);
  f.has_cpu_number = false;
  EXPECT_EQ(choose(f, nullptr).rung, Rung::thread);
}

TEST(Ladder, each_decision_has_a_reason) {
  for (const bool barrier : {false, true}) {
    for (const bool cpu : {false, true}) {
      Facts f = best();
      f.has_barrier = barrier;
      f.has_cpu_number = cpu;
      EXPECT_STRNE(choose(f, nullptr).reason, "");
    }
  }
}

TEST(Ladder, names_go_both_ways) {
  for (const Rung r : {Rung::mm_cid, Rung::cpu_id, Rung::getcpu, Rung::thread}) {
    Rung parsed{};
    EXPECT_TRUE(parse_rung(name_of(r), parsed));
    EXPECT_EQ(parsed, r);
  }
  Rung none{};
  EXPECT_FALSE(parse_rung("rseq", none));
}

}  // namespace
}  // namespace terrace::percpu
