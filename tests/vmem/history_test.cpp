// SPDX-License-Identifier: MIT OR Apache-2.0
// Random histories beside a model that marks every number: nothing is handed out twice, what is free can be had, sizes and
// walks are right, and all invariants hold after each step.
#include "arena_fixture.h"

#include <algorithm>
#include <map>
#include <random>

namespace terrace::vmem {
namespace {

// What an arena should hold: its spans, and what is allocated, by address.
class Model {
 public:
  explicit Model(std::size_t quantum) : quantum_(quantum) {}

  void add_span(std::uintptr_t start, std::size_t size) { spans_[start] = size; }
  void allocated(std::uintptr_t start, std::size_t asked) {
    const std::size_t size = round_up(asked, quantum_);
    const auto span = std::prev(spans_.upper_bound(start));
    ASSERT_TRUE(start % quantum_ == 0 && size <= span->first + span->second - start) << "not within a span";
    const auto above = pieces_.lower_bound(start);
    ASSERT_TRUE(above == pieces_.end() || above->first >= start + size) << "overlaps the next piece";
    if (above != pieces_.begin()) {
      const auto below = std::prev(above);
      ASSERT_LE(below->first + round_up(below->second, quantum_), start) << "overlaps the piece before";
    }
    pieces_[start] = asked;
  }
  Found take_one(std::size_t n) {
    const auto found = std::next(pieces_.begin(), static_cast<std::ptrdiff_t>(n % pieces_.size()));
    const Found f{found->first, found->second};
    pieces_.erase(found);
    return f;
  }
  std::size_t pieces() const { return pieces_.size(); }
  std::vector<Found> allocated() const { return list(pieces_); }
  std::vector<Found> spans() const { return list(spans_); }
  std::vector<Found> free() const {
    std::vector<Found> all;
    for (const auto& [start, size] : spans_) {
      std::uintptr_t at = start;
      for (auto p = pieces_.lower_bound(start); p != pieces_.end() && p->first < start + size; ++p) {
        if (p->first != at) all.push_back({at, p->first - at});
        at = p->first + round_up(p->second, quantum_);
      }
      if (at != start + size) all.push_back({at, start + size - at});
    }
    return all;
  }
  bool has_room_for(std::size_t asked) const {
    for (const Found& f : free()) {
      if (f.size >= asked) return true;
    }
    return false;
  }

 private:
  static std::vector<Found> list(const std::map<std::uintptr_t, std::size_t>& map) {
    std::vector<Found> all;
    for (const auto& [start, size] : map) all.push_back({start, size});
    return all;
  }
  const std::size_t quantum_;
  std::map<std::uintptr_t, std::size_t> spans_, pieces_;
};

constexpr int policies[] = {0, VM_BESTFIT, VM_FIRSTFIT, VM_NEXTFIT};

class History : public testing::TestWithParam<std::size_t> {};

TEST_P(History, of_an_arena_with_spans_that_stay) {
  const std::size_t quantum = GetParam();
  const OwnArena a(64 * quantum, 100 * quantum, quantum);
  Model model(quantum);
  model.add_span(64 * quantum, 100 * quantum);
  std::mt19937 random(static_cast<unsigned>(quantum));
  for (int step = 0; step < 4000; ++step) {
    const unsigned what = random() % 100;
    if (what == 0 && model.spans().size() < 6) {
      const std::uintptr_t start = (200 + model.spans().size() * 100) * quantum;
      ASSERT_EQ(vmem_add(a, at(start), (1 + random() % 100) * quantum, VM_NOSLEEP), at(start));
      model.add_span(start, walked(a, VMEM_SPAN).back().size);
    } else if (what < 55 || model.pieces() == 0) {
      const std::size_t asked = 1 + random() % (random() % 8 == 0 ? 60 * quantum : 6 * quantum);
      const std::uintptr_t p = a.alloc(asked, policies[random() % 4]);
      ASSERT_EQ(p != 0, model.has_room_for(asked)) << "step " << step;
      if (p != 0) {
        ASSERT_NO_FATAL_FAILURE(model.allocated(p, asked));
      }
    } else {
      const Found f = model.take_one(random());
      a.free(f.start, f.size);
    }
    ASSERT_STREQ(a.arena().check_invariants(), nullptr) << "step " << step;
    ASSERT_EQ(walked(a, VMEM_FREE), model.free()) << "step " << step;
    ASSERT_EQ(walked(a, VMEM_ALLOC), model.allocated());
    ASSERT_EQ(walked(a, VMEM_SPAN), model.spans());
  }
  while (model.pieces() != 0) {
    const Found f = model.take_one(0);
    a.free(f.start, f.size);
  }
  EXPECT_EQ(walked(a, VMEM_FREE), model.spans());
}

TEST_P(History, of_an_arena_that_imports) {
  const std::size_t quantum = GetParam();
  CountingSource source;
  source.left = 500 * quantum;
  const OwnArena a(source.importer(quantum));
  std::mt19937 random(static_cast<unsigned>(quantum) + 1);
  std::map<std::uintptr_t, std::size_t> pieces;
  for (int step = 0; step < 4000; ++step) {
    if (random() % 2 == 0 || pieces.empty()) {
      const std::size_t asked = 1 + random() % (30 * quantum), align = quantum << random() % 4;
      const std::uintptr_t p =
          address_of(vmem_xalloc(a, asked, align, 0, 0, nullptr, nullptr, policies[random() % 4] | VM_NOSLEEP));
      if (p == 0) {
        ASSERT_LT(source.left, asked + align) << "step " << step;
        continue;
      }
      ASSERT_TRUE(pieces.emplace(p, asked).second);
    } else {
      const auto victim = std::next(pieces.begin(), static_cast<std::ptrdiff_t>(random() % pieces.size()));
      vmem_xfree(a, at(victim->first), victim->second);
      pieces.erase(victim);
    }
    ASSERT_STREQ(a.arena().check_invariants(), nullptr) << "step " << step;
    std::vector<Found> given = source.given;
    std::sort(given.begin(), given.end());
    ASSERT_EQ(walked(a, VMEM_SPAN), given);
    Model model(quantum);
    for (const Found& span : given) model.add_span(span.start, span.size);
    for (const auto& [start, size] : pieces) ASSERT_NO_FATAL_FAILURE(model.allocated(start, size));
    ASSERT_EQ(walked(a, VMEM_FREE), model.free()) << "step " << step;
  }
  for (const auto& [start, size] : pieces) vmem_xfree(a, at(start), size);
  EXPECT_TRUE(source.given.empty());
}

TEST_P(History, of_quantum_caches) {
  const std::size_t quantum = GetParam();
  const OwnArena a(64 * quantum, 400 * quantum, quantum, 8 * quantum);
  Model model(quantum);
  model.add_span(64 * quantum, 400 * quantum);
  std::mt19937 random(static_cast<unsigned>(quantum) + 2);
  for (int step = 0; step < 8000; ++step) {
    if (random() % 2 == 0 || model.pieces() == 0) {
      const std::size_t asked = 1 + random() % (12 * quantum);
      const std::uintptr_t p = a.alloc(asked);
      ASSERT_EQ(p != 0, model.has_room_for(asked)) << "step " << step;  // what is cached is room
      if (p != 0) {
        ASSERT_NO_FATAL_FAILURE(model.allocated(p, asked));
      }
    } else {
      const Found f = model.take_one(random());
      random() % 4 == 0 ? vmem_xfree(a, at(f.start), f.size) : vmem_free(a, at(f.start), f.size);
    }
    if (random() % 500 == 0) a.arena().empty_caches();
    ASSERT_STREQ(a.arena().check_invariants(), nullptr) << "step " << step;
    std::size_t in_use = 0;
    for (const Found& f : model.allocated()) in_use += round_up(f.size, quantum);
    ASSERT_EQ(vmem_size(a, VMEM_ALLOC), in_use + a.arena().statistics().cached);
  }
  while (model.pieces() != 0) {
    const Found f = model.take_one(0);
    a.free(f.start, f.size);
  }
  a.arena().empty_caches();
  EXPECT_EQ(walked(a, VMEM_FREE), model.spans());
}

INSTANTIATE_TEST_SUITE_P(Quanta, History, testing::Values(1, 16, 4096));

// The tree of spans beside a map.
TEST(SpanTreeHistory, finds_what_a_map_finds) {
  std::mt19937 random(3);
  SpanTree tree;
  std::map<std::uintptr_t, Segment*> model;
  std::vector<Segment> segments(300);
  for (int step = 0; step < 20000; ++step) {
    const std::uintptr_t start = 10 * (1 + random() % 300);
    const auto found = model.find(start);
    if (found == model.end()) {
      Segment& s = segments[start / 10 - 1];
      s.start = start;
      s.size = 1 + random() % 10;
      tree.insert(s);
      model[start] = &s;
    } else {
      tree.remove(*found->second);
      model.erase(found);
    }
    const std::uintptr_t address = 1 + random() % 3050;
    const auto above = model.upper_bound(address);
    ASSERT_EQ(tree.above(address), above == model.end() ? nullptr : above->second);
    const Segment* const below = above == model.begin() ? nullptr : std::prev(above)->second;
    ASSERT_EQ(tree.at_or_below(address), below);
    ASSERT_EQ(tree.overlaps(address, 1), below != nullptr && below->end() > address);
    ASSERT_EQ(tree.size(), model.size());
  }
}

}  // namespace
}  // namespace terrace::vmem
