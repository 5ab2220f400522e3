// SPDX-License-Identifier: MIT OR Apache-2.0
// vmem_walk(): what it reports, in which order, and that with VMEM_REENTRANT the arena may change under it.
#include "arena_fixture.h"

#include <atomic>
#include <functional>
#include <map>
#include <thread>

namespace terrace::vmem {
namespace {

using Visit = std::function<void(std::uintptr_t, std::size_t)>;

void walk(vmem_t* vmp, unsigned types, const Visit& visit) {
  vmem_walk(
      vmp, static_cast<int>(types),
      [](void* f, void* start, std::size_t size) { (*static_cast<const Visit*>(f))(address_of(start), size); },
      const_cast<Visit*>(&visit));
}

constexpr unsigned reentrant = VMEM_REENTRANT;

TEST(Walk, reports_the_types_that_are_asked_for_by_address) {
  const OwnArena a(100, 50, 1);
  ASSERT_NE(vmem_add(a, at(10), 20, VM_NOSLEEP), nullptr);
  ASSERT_NE(vmem_xalloc(a, 5, 0, 0, 0, at(110), at(115), VM_NOSLEEP), nullptr);
  for (const unsigned how : {0U, reentrant}) {
    EXPECT_EQ(walked(a, VMEM_ALLOC | how), (std::vector<Found>{{110, 5}}));
    EXPECT_EQ(walked(a, VMEM_FREE | how), (std::vector<Found>{{10, 20}, {100, 10}, {115, 35}}));
    EXPECT_EQ(walked(a, VMEM_SPAN | how), (std::vector<Found>{{10, 20}, {100, 50}}));
    EXPECT_EQ(walked(a, VMEM_ALLOC | VMEM_FREE | VMEM_SPAN | VMEM_ROTOR | how),
              (std::vector<Found>{{10, 20}, {10, 20}, {100, 50}, {100, 10}, {110, 5}, {115, 35}, {0, 0}}));
    EXPECT_TRUE(walked(a, VMEM_WALKER | how).empty());
    EXPECT_TRUE(walked(a, how).empty());
  }
  vmem_xfree(a, at(110), 5);
}

TEST(Walk, what_it_reports_can_be_freed_under_it) {
  const OwnArena a(1, 1000, 1);
  for (int i = 0; i < 100; ++i) ASSERT_NE(a.alloc(10), 0U);
  std::size_t visits = 0;
  walk(a, VMEM_ALLOC | reentrant, [&](std::uintptr_t start, std::size_t size) {
    a.free(start, size);
    ++visits;
    ASSERT_STREQ(a.arena().check_invariants(), nullptr);
  });
  EXPECT_EQ(visits, 100U);
  EXPECT_EQ(walked(a, VMEM_FREE), (std::vector<Found>{{1, 1000}}));
}

TEST(Walk, survives_that_its_next_segment_goes) {
  const OwnArena a(1, 100, 1);
  for (int i = 0; i < 100; ++i) ASSERT_NE(a.alloc(1, VM_FIRSTFIT), 0U);
  std::vector<std::uintptr_t> seen;
  walk(a, VMEM_ALLOC | reentrant, [&](std::uintptr_t start, std::size_t) {
    seen.push_back(start);
    if (start % 10 != 1) return;  // the eight behind the next are freed and joined, the next one last
    for (std::uintptr_t i = start + 8; i > start; --i) a.free(i, 1);
    ASSERT_STREQ(a.arena().check_invariants(), nullptr);
  });
  std::vector<std::uintptr_t> expected;
  for (std::uintptr_t i = 0; i < 100; i += 10) {
    expected.push_back(i + 1);
    expected.push_back(i + 10);
  }
  EXPECT_EQ(seen, expected);
  for (const std::uintptr_t p : expected) a.free(p, 1);
}

TEST(Walk, walks_within_walks) {
  const OwnArena a(1, 20, 1);
  for (int i = 0; i < 20; ++i) ASSERT_NE(a.alloc(1), 0U);
  std::size_t inner = 0;
  walk(a, VMEM_ALLOC | reentrant, [&](std::uintptr_t start, std::size_t) {
    walk(a, VMEM_ALLOC | reentrant, [&](std::uintptr_t, std::size_t) { ++inner; });
    a.free(start, 1);
  });
  EXPECT_EQ(inner, 20U * 21 / 2);
}

TEST(Walk, a_span_that_goes_back_is_passed) {
  CountingSource source;
  const OwnArena a(source.importer(1));
  std::vector<std::uintptr_t> pieces;
  for (int i = 0; i < 10; ++i) pieces.push_back(a.alloc(5));
  std::vector<Found> spans;
  walk(a, VMEM_SPAN | reentrant, [&](std::uintptr_t start, std::size_t size) {
    spans.push_back({start, size});
    if (spans.size() == 1) {
      for (std::size_t i = 1; i < 9; ++i) a.free(pieces[i], 5);  // their spans, of which one is the next
    }
  });
  EXPECT_EQ(spans, (std::vector<Found>{{pieces[0], 5}, {pieces[9], 5}}));
  a.free(pieces[0], 5);
  a.free(pieces[9], 5);
}

TEST(Walk, reports_once_what_is_there_all_the_time_whatever_others_do) {
  const OwnArena a(1, 4000, 1, 4);
  std::map<std::uintptr_t, int> lasting;  // seen how often
  for (std::uintptr_t i = 0; i < 100; ++i) {
    ASSERT_NE(vmem_xalloc(a, 3, 0, 0, 0, at(i * 40 + 11), at(i * 40 + 14), VM_NOSLEEP), nullptr);
    lasting[i * 40 + 11] = 0;
  }
  std::atomic<bool> stop{false};
  std::atomic<std::size_t> rounds{0};
  std::thread other([&] {
    std::vector<Found> pieces;
    for (std::size_t i = 0; !stop.load(); ++i) {
      const std::size_t size = 1 + i * 7 % 9;
      if (const std::uintptr_t p = a.alloc(size)) pieces.push_back({p, size});
      if (pieces.size() < 150) continue;
      for (const Found& f : pieces) a.free(f.start, f.size);
      pieces.clear();
      rounds.fetch_add(1);
    }
    for (const Found& f : pieces) a.free(f.start, f.size);
  });
  while (rounds.load() == 0) std::this_thread::yield();
  int walks = 0;
  for (const std::size_t begun = rounds.load(); walks < 20 || rounds.load() < begun + 20; ++walks) {
    std::uintptr_t last = 0;
    walk(a, VMEM_ALLOC | reentrant, [&](std::uintptr_t start, std::size_t) {
      EXPECT_LT(last, start) << "in the order of addresses";
      last = start;
      const auto found = lasting.find(start);
      if (found != lasting.end()) ++found->second;
      if (start % 64 == 0) std::this_thread::yield();
    });
  }
  stop.store(true);
  other.join();
  for (const auto& [start, seen] : lasting) {
    EXPECT_EQ(seen, walks) << start;
    vmem_xfree(a, at(start), 3);
  }
}

}  // namespace
}  // namespace terrace::vmem
