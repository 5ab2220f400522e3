// SPDX-License-Identifier: MIT OR Apache-2.0
// Each invariant is broken once, on purpose: check_invariants(), or the assertion, says which one. What was broken is mended
// again, and no other thread uses the heap meanwhile.
#include "heap/fast_path/fast_path.h"
#include "heap/heap.h"
#include "terrace/malloc.h"

#include <gtest/gtest.h>
#include <string>
#include <utility>
#include <vector>

namespace terrace::heap {
namespace {

using span::GranuleIndex;
using span::Record;
using span::State;

constexpr std::size_t size = 1000;

// Changes a value for the time of a scope.
template <class T>
class Broken {
 public:
  template <class V>
  Broken(T& place, V value) : place_(place), before_(place) {
    place_ = static_cast<T>(value);
  }
  ~Broken() { place_ = before_; }
  Broken(const Broken&) = delete;
  Broken& operator=(const Broken&) = delete;

 private:
  T& place_;
  T before_;
};

class InvariantsTest : public testing::Test {
 protected:
  void SetUp() override {
    for (int i = 0; i < 2000; ++i) blocks_.push_back(terrace_malloc(size));
    for (int i = 0; i < 6; ++i) large_.push_back(terrace_malloc(mib));
    for (std::size_t i = 0; i < blocks_.size(); i += 3) terrace_free(std::exchange(blocks_[i], nullptr));
    for (std::size_t i = 0; i < large_.size(); i += 2) terrace_free(std::exchange(large_[i], nullptr));
    ASSERT_STREQ(heap.check_invariants(), nullptr);
  }
  void TearDown() override {
    EXPECT_STREQ(heap.check_invariants(), nullptr);
    for (void* p : blocks_) terrace_free(p);
    for (void* p : large_) terrace_free(p);
  }
  // Two slabs of the class are never alike by accident: one with blocks of ours in it.
  SlabRecord& slab() {
    const span::Window& w = heap.spans().window();
    return w.record(w.record(w.index_of(blocks_[1])).first).owners_part<SlabRecord>();
  }
  Record& span_in(State state) {
    const span::Window& w = heap.spans().window();
    for (GranuleIndex i = 0; i < w.extent() >> span::granule_shift; ++i) {
      if (w.record(i).state == state && w.record(i).granules > 1) return w.record(i);
    }
    ADD_FAILURE() << "no such span";
    return w.record(0);
  }
  static void expect_complaint(const char* name) {
    const char* const broken = heap.check_invariants();
    ASSERT_NE(broken, nullptr) << name;
    EXPECT_EQ(std::string(broken).substr(0, std::string(name).size()), name) << broken;
  }
  // The slot that the thread is on, with blocks in a word: a tick may have drained it, or the thread was moved.
  static level::Slot& slot_with(HomeClass h) {
    for (int attempt = 0; attempt < 1000; ++attempt) {
      terrace_free(terrace_malloc(class_size(class_of(h))));
      level::Slot* const own = heap.core().current();
      if (own != nullptr && names_something(own->words[index(h)]) && level::top_round(own->words[index(h)]) != 0) return *own;
    }
    ADD_FAILURE() << "no slot has blocks of its own";
    return heap.core().slot(0);
  }

  std::vector<void*> blocks_, large_;
};

TEST_F(InvariantsTest, words_of_slots) {
  const HomeClass h = home_class(class_for(size), 0), other = home_class(class_for(2 * size), 0);
  level::Slot& s = slot_with(h);
  {
    const Broken stopped(s.words[index(h)], stopped_word);
    expect_complaint("I1: ");
  }
  {
    const auto m = heap.magazines().of_word(s.words[index(h)]);
    const Broken limit(m.begin()[-2], m.count() - 1);
    expect_complaint("M1: ");
  }
  {
    const auto m = heap.magazines().of_word(s.words[index(h)]);
    const Broken bottom(m.begin()[-1], 1);
    expect_complaint("M1: ");
  }
  {
    const auto m = heap.magazines().of_word(s.words[index(h)]);
    const Broken round(m.begin()[0], 0);
    expect_complaint("M1: ");
  }
  {
    const Broken misplaced(s.words[index(other)], s.words[index(h)]);
    expect_complaint("I2: ");
  }
  const Broken cap(s.cap[index(home_class(class_for(SizeRule::largest), 0))], 254);
  expect_complaint("I3: ");
}

TEST_F(InvariantsTest, pages_of_slabs) {
  SlabRecord& r = slab();
  {
    const Broken purged(r.purged, ~std::uint64_t{0});
    expect_complaint("W1: ");
  }
  {
    const Broken holes(r.waste.holes, r.waste.holes + 1);
    expect_complaint("W2: ");
  }
  {
    const Broken counted(r.waste.counted, r.waste.counted + 1);
    expect_complaint("W");  // its list would be another, or the sum
  }
  {
    const Broken list(r.list, r.list + 1);
    expect_complaint("W5: ");
  }
  {
    const Broken bits(r.free_map[0], r.free_map[0] ^ 1);
    expect_complaint("slabs: ");
  }
  const Broken byte(heap.spans().window().owners_byte(heap.spans().window().index_of(blocks_[1])), 0);
  expect_complaint("");
}

TEST_F(InvariantsTest, spans) {
  {
    Record& r = span_in(large_span);
    const Broken length(r.granules, r.granules + 1);
    expect_complaint("S");
  }
  {
    Record& r = span_in(large_span);
    const Broken first((&r + r.granules - 1)->first, r.first + 1);
    expect_complaint("S2: ");
  }
  Record& r = span_in(State::dirty);
  {
    const Broken state(r.state, State::clean);
    expect_complaint("S");
  }
  {
    const Broken state(r.state, State::purging);
    expect_complaint("S4: ");
  }
  const Broken when(r.free.when, ~std::uint64_t{0});
  if (r.free.newer != span::no_granule) expect_complaint("S5: ");
}

TEST_F(InvariantsTest, depots) {
  // Until a magazine is there: more than all slots hold.
  std::vector<void*> many;
  for (int i = 0; i < 20000; ++i) many.push_back(terrace_malloc(64));
  for (void* p : many) terrace_free(p);
  level::Depots& depots = heap.depots();
  for (level::Place place; place.depot < depots.depots(); ++place.depot) {
    for (place.shard = 0; place.shard < depots.shards(); ++place.shard) {
      for (std::size_t key = 1; key < level::block_keys; ++key) {
        if (!depots.at(place).has(key)) continue;
        ASSERT_STREQ(heap.check_invariants(), nullptr);
        const level::Magazine m = depots.at(place).pop_oldest(key);
        expect_complaint("budget: ");
        ASSERT_TRUE(depots.put({.slot = place.shard, .cpu = {}, .processor = place.depot, .node = 0}, key, m));
        return;
      }
    }
  }
  FAIL() << "no magazine in any depot";
}

TEST_F(InvariantsTest, the_fast_path_stays_within_the_extent) {
  const Broken extent(fast_path.extent_16ths, heap.spans().window().extent() / 16 + 1);
  expect_complaint("the fast path ");
}

// ---- assertions

class AssertionsDeathTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!assertions) GTEST_SKIP() << "a build without assertions";
  }
};

TEST_F(AssertionsDeathTest, a_budget_gets_back_no_more_than_it_granted) {
  level::Budget budget;
  budget.set_limit(100);
  ASSERT_TRUE(budget.reserve(50));
  budget.release(20);
  EXPECT_DEATH(budget.release(31), "terrace: internal error: budget: more is released than was granted\n");
}

TEST_F(AssertionsDeathTest, depots_take_magazines_only) {
  level::MagazineStack stack;
  EXPECT_DEATH(stack.push({}), "internal error: depot: gets what is no magazine\n");
  EXPECT_DEATH(stack.push(level::Magazine::of_word(stopped_word, 0)), "internal error: depot: gets what is no magazine\n");
}

TEST_F(AssertionsDeathTest, a_span_is_given_once) {
  terrace_free(terrace_malloc(size));  // the heap has its place before another window looks for one
  static auto* const spans = new span::Spans;
  ASSERT_TRUE(spans->open());
  const GranuleIndex first = spans->take(4, State::taken).first;
  spans->give(first);
  EXPECT_DEATH(spans->give(first), "internal error: spans: what is given was not taken\n");
}

TEST_F(AssertionsDeathTest, no_sequence_runs_under_a_lock) {
  terrace_free(terrace_malloc(size));
  const os::LockGuard guard(heap.core().of_threads().mutex());
  level::Slot* const own = heap.core().current();
  if (own == nullptr) GTEST_SKIP() << "no slot here";
  EXPECT_DEATH(heap.core().take_word(*own, home_at(5)), "internal error: a lock is held while a sequence runs\n");
}

}  // namespace
}  // namespace terrace::heap
