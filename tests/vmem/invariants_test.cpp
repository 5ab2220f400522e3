// SPDX-License-Identifier: MIT OR Apache-2.0
// Each invariant of arena.h is broken once, on purpose, and mended again: check_invariants() says which one.
#include "arena_fixture.h"
#include "arena_innards.h"

namespace terrace::vmem {
namespace {

using Kind = Segment::Kind;
using Innards = ArenaInnards;

// Changes a value for the time of a scope.
template <class T>
class Broken {
 public:
  Broken(T& place, T value) : place_(place), before_(place) { place_ = value; }
  ~Broken() { place_ = before_; }
  Broken(const Broken&) = delete;
  Broken& operator=(const Broken&) = delete;

 private:
  T& place_;
  T before_;
};

// Of the span [1024, +64): 1024 is allocated, 1040 free, 1056 cached, 1072 allocated, 16 each. An imported span is allocated.
class InvariantsTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_NE(vmem_add(a_, at(1024), 64, VM_NOSLEEP), nullptr);
    for (std::uintptr_t i = 1024; i < 1088; i += 16) ASSERT_EQ(a_.alloc(16, VM_FIRSTFIT), i);
    vmem_free(a_, at(1056), 16);
    vmem_xfree(a_, at(1040), 16);
    imported_ = a_.alloc(32);
    ASSERT_EQ(source_.given, (std::vector<Found>{{imported_, 32}}));
    ASSERT_STREQ(a_.arena().check_invariants(), nullptr);
  }
  void TearDown() override {
    EXPECT_STREQ(a_.arena().check_invariants(), nullptr);
    vmem_xfree(a_, at(1024), 16);
    vmem_xfree(a_, at(1072), 16);
    vmem_xfree(a_, at(imported_), 32);
  }
  Segment& segment(std::uintptr_t start, Kind kind) {
    Segment* const s = Innards::segment(a_.arena(), start, kind);
    EXPECT_NE(s, nullptr);
    return *s;
  }
  void expect_complaint(const std::string& name) {
    const char* const broken = a_.arena().check_invariants();
    ASSERT_NE(broken, nullptr) << name;
    EXPECT_EQ(std::string(broken).substr(0, name.size()), name) << broken;
  }
  CountingSource source_;
  const OwnArena a_{source_.importer(16, 16)};
  std::uintptr_t imported_ = 0;
};

TEST_F(InvariantsTest, segments_are_the_span) {
  {
    const Broken start(segment(1072, Kind::allocated).start, std::uintptr_t{1080});
    expect_complaint("A1: ");
  }
  {
    const Broken size(segment(1072, Kind::allocated).size, std::size_t{32});
    expect_complaint("A1: ");
  }
  {
    const Broken kind(segment(1040, Kind::free).kind, Kind::unused);
    expect_complaint("A1: ");
  }
  {
    Segment& marker = segment(1024, Kind::span);
    const Broken kind(marker.kind, Kind::unused);
    expect_complaint("A1: a segment belongs to no span");
  }
  Segment& s = segment(1040, Kind::free);
  const Broken before(s.before, s.after);
  expect_complaint("A1: the list");
}

TEST_F(InvariantsTest, free_neighbours_are_joined_and_free_spans_given_back) {
  {
    const Broken kind(segment(1056, Kind::cached).kind, Kind::free);
    expect_complaint("A2: two neighbours");
  }
  Segment& s = segment(imported_, Kind::allocated);
  const Segment was = s;
  {
    const Broken kind(s.kind, Kind::free);
    Innards::table(a_.arena()).remove(s);
    Innards::free_lists(a_.arena()).insert(s);
    expect_complaint("A2: an imported span");
    Innards::free_lists(a_.arena()).remove(s);
  }
  s = was;
  Innards::table(a_.arena()).insert(s);
}

TEST_F(InvariantsTest, free_segments_are_listed_by_size) {
  Segment& free = segment(1040, Kind::free);
  FreeLists& lists = Innards::free_lists(a_.arena());
  lists.remove(free);
  expect_complaint("A3: a free segment");
  lists.insert(free);
  Segment other{};
  other.size = 4096;
  lists.insert(other);
  expect_complaint("A3: a list has");
  lists.remove(other);
}

TEST_F(InvariantsTest, allocated_segments_are_in_the_table) {
  Segment& s = segment(1024, Kind::allocated);
  AllocatedTable& table = Innards::table(a_.arena());
  table.remove(s);
  expect_complaint("A4: an allocated segment");
  table.insert(s);
  {
    const Broken asked(s.asked, std::size_t{17});
    expect_complaint("A4: more");
  }
  Segment other{};
  other.start = 4096;
  table.insert(other);
  expect_complaint("A4: the table");
  table.remove(other);
}

TEST_F(InvariantsTest, quantum_caches_have_what_is_cached) {
  Segment& s = segment(1056, Kind::cached);
  {
    const Broken kind(s.kind, Kind::allocated);
    expect_complaint("A5: a quantum cache has what");
  }
  {
    const Broken kind(segment(1024, Kind::allocated).kind, Kind::cached);
    expect_complaint("A5: a cached segment");
  }
  Segment* const taken = Innards::caches(a_.arena()).take(16);
  ASSERT_EQ(taken, &s);
  s.kind = Kind::cached;
  expect_complaint("A5: a cached segment");
  ASSERT_TRUE(Innards::caches(a_.arena()).put(s));
}

TEST_F(InvariantsTest, sums_are_right) {
  for (LockedCounter* const sum : {&Innards::in_use(a_.arena()), &Innards::imported(a_.arena())}) {
    sum->add(16);
    expect_complaint("A6: ");
    sum->add(0 - std::uint64_t{16});
  }
}

TEST_F(InvariantsTest, the_tree_has_the_spans) {
  SpanTree& tree = Innards::spans(a_.arena());
  Segment& marker = segment(1024, Kind::span);
  tree.remove(marker);
  expect_complaint("A7: a span is not");
  tree.insert(marker);
  Segment other{};
  other.start = 16;
  tree.insert(other);
  expect_complaint("A7: the tree");
  tree.remove(other);
}

TEST_F(InvariantsTest, the_rotor_is_a_segment_at_or_before_its_address) {
  Segment other{};
  {
    const Broken rotor(Innards::rotor(a_.arena()), &other);
    expect_complaint("A8: ");
  }
  const Broken rotor(Innards::rotor(a_.arena()), &segment(1040, Kind::free));
  expect_complaint("A8: ");
  const Broken address(Innards::rotor_address(a_.arena()), std::uintptr_t{1040});
  EXPECT_STREQ(a_.arena().check_invariants(), nullptr);
}

}  // namespace
}  // namespace terrace::vmem
