// SPDX-License-Identifier: MIT OR Apache-2.0
// Any history of calls: by one thread beside a model, and by several.
#include "spans_fixture.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <memory>
#include <random>
#include <thread>
#include <vector>

namespace terrace::span {
namespace {

// A random walk beside a model that knows the state of each granule, and nothing of lists.
class Walk {
 public:
  explicit Walk(Spans& spans) : spans_(spans), state_(1 << 16, Model::clean) {}
  ~Walk() { EXPECT_STREQ(spans_.check_invariants(), nullptr); }

  void step() {
    const unsigned what = rng_() % 16;
    if (held_.empty() || (held_.size() < 60 && what < 8)) {
      take(what == 0 ? 1 + rng_() % 300 : what < 3 ? 1 + rng_() % 50 : 1 + rng_() % 5);
    } else if (what < 14) {
      change(rng_() % held_.size(), what);
    } else {
      purge(what == 14 && rng_() % 16 == 0);
    }
    const auto any = static_cast<GranuleIndex>(rng_() % state_.size());
    ASSERT_EQ(spans_.is_free_again(any), any < untouched_ && state_[any] != Model::taken) << any;
  }
  void give_all() {
    while (!held_.empty()) give(0);
  }

 private:
  enum class Model : std::uint8_t { clean, dirty, taken };
  struct Held {
    GranuleIndex first;
    std::uint32_t granules;
  };
  // All of the room that a record has for its span's owner.
  using Part = std::array<std::uint64_t, owners_part_size / sizeof(std::uint64_t)>;

  std::byte& at(GranuleIndex i) { return *spans_.window().address(i); }
  Part& part(GranuleIndex first) { return spans_.window().record(first).owners_part<Part>(); }
  static Part written(GranuleIndex first) {
    Part p;
    p.fill(~std::uint64_t{first});
    return p;
  }
  void expect(GranuleIndex first, std::uint32_t n, Model model) {
    for (GranuleIndex i = first; i < first + n; ++i) ASSERT_EQ(state_.at(i), model) << i;
  }
  void set(GranuleIndex first, std::uint32_t n, Model model) {
    for (GranuleIndex i = first; i < first + n; ++i) state_[i] = model;
  }
  // The longest run of dirty granules.
  std::uint32_t longest_dirty() const {
    std::uint32_t run = 0, longest = 0;
    for (const Model m : state_) {
      run = m == Model::dirty ? run + 1 : 0;
      longest = std::max(longest, run);
    }
    return longest;
  }
  void write(GranuleIndex first, std::uint32_t n) {
    for (GranuleIndex i = first; i < first + n; ++i) at(i) = std::byte{1};
  }

  void take(std::uint32_t n) {
    const std::uint32_t dirty = longest_dirty();
    const auto cut = static_cast<Cut>(rng_() % 3);
    const Spans::Span s = spans_.take(n, State::taken, cut);
    ASSERT_NE(s.first, no_granule);
    for (GranuleIndex i = s.first; cut != Cut::whole && i < s.first + n; ++i) {
      ASSERT_EQ(spans_.window().record(i).first, s.first) << i;
    }
    part(s.first) = written(s.first);
    expect(s.first, n, s.clean ? Model::clean : Model::dirty);
    // Long enough for a bin above the own one: pages that are there are used before pages that are not.
    EXPECT_FALSE(s.clean && dirty >= n + n / 16 + 1);
    for (GranuleIndex i = s.first; s.clean && i < s.first + n; ++i) ASSERT_EQ(at(i), std::byte{0});
    write(s.first, n);
    set(s.first, n, Model::taken);
    untouched_ = std::max(untouched_, s.first + n);
    held_.push_back({s.first, n});
  }
  void change(std::size_t k, unsigned what) {
    Held& h = held_[k];
    ASSERT_EQ(part(h.first), written(h.first)) << "the owner's part of the record at " << h.first;
    if (what == 12 && h.granules > 1) {
      const std::uint32_t left = 1 + rng_() % (h.granules - 1);
      spans_.shorten(h.first, left);
      set(h.first + left, h.granules - left, Model::dirty);
      h.granules = left;
      see_purges();
    } else if (what == 13) {
      const std::uint32_t more = 1 + rng_() % 4;
      if (!spans_.extend(h.first, h.granules + more)) return;
      ASSERT_TRUE(state_.at(h.first + h.granules) != Model::taken);
      expect(h.first + h.granules, more, state_[h.first + h.granules]);
      write(h.first + h.granules, more);
      set(h.first + h.granules, more, Model::taken);
      h.granules += more;
      untouched_ = std::max(untouched_, h.first + h.granules);
    } else {
      give(k);
    }
  }
  void give(std::size_t k) {
    const Held h = held_[k];
    set(h.first, h.granules, Model::dirty);
    spans_.give(h.first, ++now_);
    held_[k] = held_.back();
    held_.pop_back();
    see_purges();
  }
  void purge(bool all) {
    if (all) {
      spans_.purge_all();
    } else {
      spans_.decay(now_ + 980);
    }
    see_purges();
  }
  // Which of the dirty spans were purged is the library's choice: the model asks the records, and looks at the memory.
  void see_purges() {
    std::uint64_t dirty = 0;
    const auto frontier = static_cast<GranuleIndex>(spans_.window().extent() >> granule_shift);
    for (GranuleIndex i = 0; i < frontier; i += spans_.window().record(i).granules) {
      const Record& r = spans_.window().record(i);
      if (r.state == State::dirty) dirty += r.granules;
      if (r.state != State::clean) continue;
      for (GranuleIndex g = i; g < i + r.granules; ++g) {
        if (state_[g] == Model::clean) continue;
        ASSERT_EQ(state_[g], Model::dirty);
        ASSERT_EQ(at(g), std::byte{0});
        state_[g] = Model::clean;
      }
    }
    ASSERT_EQ(dirty, static_cast<std::uint64_t>(std::count(state_.begin(), state_.end(), Model::dirty)));
    ASSERT_EQ(spans_.dirty_bytes(), dirty << granule_shift);
    ASSERT_STREQ(spans_.check_invariants(), nullptr);
  }

  Spans& spans_;
  std::mt19937 rng_{7};
  GranuleIndex untouched_ = 0;  // from here on nothing was ever taken
  std::uint64_t now_ = 1;
  std::vector<Model> state_;
  std::vector<Held> held_;
};

TEST_F(SpansTest, a_random_walk_agrees_with_a_model_of_every_granule) {
  Walk walk(*spans_);
  for (int i = 0; i < 3000 && !HasFatalFailure(); ++i) walk.step();
  walk.give_all();
  EXPECT_EQ(spans_->taken_bytes(), 0U);
}

// The same from several threads at once: nothing is handed out twice, and all of it comes back.
TEST_F(SpansTest, threads_that_take_give_and_purge_never_share_a_granule) {
  std::vector<std::thread> threads;
  std::atomic<int> shared = 0;
  for (unsigned t = 1; t <= 4; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937 rng(t);
      std::vector<std::pair<GranuleIndex, std::uint32_t>> held;
      const auto give = [&](std::size_t k) {
        const auto [first, n] = held[k];
        for (GranuleIndex g = first; g < first + n; ++g) shared += *memory(g) != std::byte(t);
        spans_->give(first);
        held[k] = held.back();
        held.pop_back();
      };
      for (int i = 0; i < 3000; ++i) {
        if (held.size() < 20 && rng() % 2 == 0) {
          const std::uint32_t n = 1 + rng() % 40;
          const Spans::Span s = spans_->take(n, State::taken);
          for (GranuleIndex g = s.first; g < s.first + n; ++g) {
            shared += s.clean && *memory(g) != std::byte{0};
            *memory(g) = std::byte(t);
          }
          held.emplace_back(s.first, n);
        } else if (!held.empty()) {
          give(rng() % held.size());
        }
        if (i % 500 == 0) spans_->purge_all();
      }
      while (!held.empty()) give(0);
    });
  }
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(shared, 0);
  EXPECT_EQ(spans_->taken_bytes(), 0U);
}

}  // namespace
}  // namespace terrace::span
