// SPDX-License-Identifier: MIT OR Apache-2.0
// vmem_xalloc(): each constraint alone, what contradicts itself, and all at random beside a search of every address.
#include "arena_fixture.h"

#include <algorithm>
#include <random>

namespace terrace::vmem {
namespace {

struct Asked {
  std::size_t size, align = 0, phase = 0, nocross = 0;
  std::uintptr_t lowest = 0, limit = 0;
};

std::uintptr_t xalloc(vmem_t* vmp, const Asked& c, int flags = VM_NOSLEEP) {
  errno = 0;
  return address_of(vmem_xalloc(vmp, c.size, c.align, c.phase, c.nocross, at(c.lowest), at(c.limit), flags));
}

// Allocates, frees, and says where it was.
std::uintptr_t place(vmem_t* vmp, const Asked& c, int flags = VM_FIRSTFIT) {
  const std::uintptr_t p = xalloc(vmp, c, flags);
  vmem_xfree(vmp, at(p), p == 0 ? 0 : c.size);
  return p;
}

TEST(Xalloc, aligns) {
  const OwnArena a(1001, 9000, 1);
  EXPECT_EQ(place(a, {.size = 10, .align = 1}), 1001U);
  EXPECT_EQ(place(a, {.size = 10, .align = 8}), 1008U);
  EXPECT_EQ(place(a, {.size = 10, .align = 4096}), 4096U);
  EXPECT_EQ(place(a, {.size = 10, .align = 8192}), 8192U);
  EXPECT_EQ(place(a, {.size = 10, .align = 16384}), 0U);
  EXPECT_EQ(errno, ENOMEM);
  EXPECT_EQ(place(a, {.size = 10, .align = std::size_t{1} << 63}), 0U);
}

TEST(Xalloc, shifts_by_phase) {
  const OwnArena a(1001, 9000, 1);
  EXPECT_EQ(place(a, {.size = 10, .align = 8, .phase = 3}), 1003U);
  EXPECT_EQ(place(a, {.size = 10, .align = 1024, .phase = 1023}), 1023U);
  EXPECT_EQ(place(a, {.size = 10, .align = 1024, .phase = 10}), 1034U);
}

TEST(Xalloc, does_not_cross) {
  const OwnArena a(1001, 9000, 1);
  EXPECT_EQ(place(a, {.size = 23, .nocross = 1024}), 1001U) << "ends at the boundary";
  EXPECT_EQ(place(a, {.size = 24, .nocross = 1024}), 1024U);
  EXPECT_EQ(place(a, {.size = 1024, .nocross = 1024}), 1024U);
  EXPECT_EQ(place(a, {.size = 20, .align = 16, .phase = 12, .nocross = 32}), 1004U);
  EXPECT_EQ(place(a, {.size = 20, .align = 16, .phase = 12, .nocross = 32, .lowest = 1005}), 1036U);
}

TEST(Xalloc, stays_within_limits) {
  const OwnArena a(1000, 1000, 1);
  EXPECT_EQ(place(a, {.size = 10, .lowest = 1500}), 1500U);
  EXPECT_EQ(place(a, {.size = 10, .lowest = 1990}), 1990U);
  EXPECT_EQ(place(a, {.size = 10, .lowest = 1991}), 0U);
  EXPECT_EQ(place(a, {.size = 10, .limit = 1010}), 1000U);
  EXPECT_EQ(place(a, {.size = 10, .limit = 1009}), 0U);
  EXPECT_EQ(place(a, {.size = 10, .lowest = 1500, .limit = 1510}), 1500U);
  EXPECT_EQ(place(a, {.size = 10, .lowest = 1500, .limit = 1509}), 0U);
  EXPECT_EQ(place(a, {.size = 10, .lowest = 5000}), 0U);
  EXPECT_EQ(place(a, {.size = 10, .lowest = ~std::uintptr_t{0}}), 0U);
  EXPECT_EQ(place(a, {.size = 10, .lowest = 10, .limit = 500}), 0U);
}

TEST(Xalloc, limits_need_not_be_whole_quanta) {
  const OwnArena a(4096, 10 * 4096, 4096);
  EXPECT_EQ(place(a, {.size = 100, .lowest = 4097, .limit = 8292}), 8192U);
  EXPECT_EQ(place(a, {.size = 101, .lowest = 4097, .limit = 8292}), 0U);
}

TEST(Xalloc, refuses_what_contradicts_itself) {
  const OwnArena a(4096, 1 << 20, 4096);
  const Asked wrong[] = {
      {.size = 1, .align = 5000},                                     // no power of two
      {.size = 1, .align = 2048},                                     // less than the quantum
      {.size = 1, .align = 8192, .phase = 8192},                      // not below align
      {.size = 1, .align = 8192, .phase = 100},                       // not in quanta
      {.size = 1, .phase = 4096},                                     // not below the quantum
      {.size = 1, .nocross = 12288},                                  // no power of two
      {.size = 1, .nocross = 2048},                                   // less than align
      {.size = 8193, .nocross = 8192},                                // shorter than the piece
      {.size = 5000, .align = 8192, .phase = 4096, .nocross = 8192},  // and than phase and piece
      {.size = 1, .lowest = 8192, .limit = 8192},                     // nothing in between
      {.size = 1, .lowest = 8193, .limit = 8192},
  };
  for (const Asked& c : wrong) {
    EXPECT_EQ(xalloc(a, c), 0U);
    EXPECT_EQ(errno, EINVAL) << (&c - wrong);
  }
  EXPECT_EQ(a.arena().statistics().failures, 0U);
  EXPECT_EQ(place(a, {.size = 4096, .align = 8192, .phase = 4096, .nocross = 8192}), 4096U);
}

// ---- at random

struct Holes {
  static constexpr std::uintptr_t base = 960;
  static constexpr std::size_t bytes = 1024;
  bool taken[bytes] = {};

  bool is_free(std::uintptr_t address, std::size_t size) const {
    if (address < base || address + size > base + bytes) return false;
    for (std::size_t i = 0; i < size; ++i) {
      if (taken[address - base + i]) return false;
    }
    return true;
  }
  void set(std::uintptr_t address, std::size_t size, bool value) { std::fill_n(taken + (address - base), size, value); }
};

bool meets(std::uintptr_t p, const Asked& c) {
  if (c.align != 0 && p % c.align != c.phase) return false;
  if (c.nocross != 0 && p / c.nocross != (p + c.size - 1) / c.nocross) return false;
  return p >= c.lowest && (c.limit == 0 || p + c.size <= c.limit);
}

std::uintptr_t lowest_place(const Holes& holes, const Asked& c) {
  for (std::uintptr_t p = Holes::base; p < Holes::base + Holes::bytes; ++p) {
    if (meets(p, c) && holes.is_free(p, c.size)) return p;
  }
  return 0;
}

Asked any_constraints(std::mt19937& random) {
  const auto below = [&random](unsigned n) { return random() % n; };
  Asked c{.size = 1 + below(below(4) == 0 ? 200 : 20)};
  if (below(2) != 0) c.align = std::size_t{1} << below(8);
  if (c.align != 0) c.phase = below(static_cast<unsigned>(c.align));
  if (below(3) == 0) {
    c.nocross = std::size_t{1} << below(9);
    while (c.nocross < c.align || c.nocross < c.phase + c.size) c.nocross *= 2;
  }
  if (below(3) == 0) c.lowest = Holes::base - 20 + below(Holes::bytes);
  if (below(3) == 0) c.limit = max_of(c.lowest + 1, Holes::base + below(Holes::bytes + 20));
  return c;
}

class XallocAtRandom : public testing::TestWithParam<int> {};

TEST_P(XallocAtRandom, finds_a_place_exactly_if_there_is_one) {
  const OwnArena a(Holes::base, Holes::bytes, 1);
  Holes holes;
  std::mt19937 random(7);
  std::vector<Found> pieces;
  int found = 0, refused = 0;
  for (int step = 0; step < 20000; ++step) {
    if (pieces.size() > 40 || (!pieces.empty() && random() % 3 == 0)) {
      const std::size_t i = random() % pieces.size();
      vmem_xfree(a, at(pieces[i].start), pieces[i].size);
      holes.set(pieces[i].start, pieces[i].size, false);
      pieces[i] = pieces.back();
      pieces.pop_back();
      continue;
    }
    const Asked c = any_constraints(random);
    const std::uintptr_t lowest = lowest_place(holes, c), p = xalloc(a, c, GetParam());
    ASSERT_EQ(p == 0, lowest == 0) << "step " << step;
    ++(p == 0 ? refused : found);
    if (p == 0) continue;
    ASSERT_TRUE(meets(p, c) && holes.is_free(p, c.size)) << "step " << step;
    if (GetParam() == VM_FIRSTFIT) {
      ASSERT_EQ(p, lowest);
    }
    holes.set(p, c.size, true);
    pieces.push_back({p, c.size});
    if (step % 16 == 0) {
      ASSERT_STREQ(a.arena().check_invariants(), nullptr);
    }
  }
  EXPECT_GT(found, 5000);
  EXPECT_GT(refused, 500);
  for (const Found& f : pieces) vmem_xfree(a, at(f.start), f.size);
}

INSTANTIATE_TEST_SUITE_P(Policies, XallocAtRandom, testing::Values(0, VM_BESTFIT, VM_FIRSTFIT, VM_NEXTFIT));

}  // namespace
}  // namespace terrace::vmem
