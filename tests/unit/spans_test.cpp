// SPDX-License-Identifier: MIT OR Apache-2.0
#include "span/spans.h"

#include "os/memory.h"

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstring>
#include <gtest/gtest.h>
#include <memory>
#include <random>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace terrace::span {
namespace {

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

TEST_F(SpansTest, fresh_spans_are_zero_and_writable) {
  const auto s = spans_->take(3, State::large);
  ASSERT_NE(s.first, no_granule);
  EXPECT_TRUE(s.clean && s.untouched);
  EXPECT_EQ(memory(s.first)[3 * granule_size - 1], std::byte{0});
  std::memset(memory(s.first), 1, 3 * granule_size);
}

TEST_F(SpansTest, a_given_span_is_taken_again_dirty) {
  const auto a = spans_->take(2, State::large);
  spans_->give(a.first);
  const auto b = spans_->take(2, State::large);
  EXPECT_EQ(b.first, a.first);
  EXPECT_FALSE(b.clean || b.untouched);
}

TEST_F(SpansTest, neighbours_merge) {
  const auto a = spans_->take(2, State::large);
  const auto b = spans_->take(2, State::large);
  const auto c = spans_->take(2, State::large);
  const auto guard = spans_->take(1, State::large);
  (void)guard;
  ASSERT_EQ(b.first, a.first + 2);
  ASSERT_EQ(c.first, b.first + 2);
  spans_->give(a.first);
  spans_->give(c.first);
  spans_->give(b.first);
  EXPECT_EQ(spans_->take(6, State::large).first, a.first);
}

TEST_F(SpansTest, extends_into_what_is_free_behind_and_no_further) {
  const auto a = spans_->take(2, State::large);
  const auto b = spans_->take(2, State::large);
  EXPECT_FALSE(spans_->extend(a.first, 3));
  spans_->give(b.first);
  EXPECT_TRUE(spans_->extend(a.first, 3));
  std::memset(memory(a.first), 1, 3 * granule_size);
  spans_->shorten(a.first, 1);
  EXPECT_EQ(spans_->take(2, State::large).first, a.first + 1);
}

TEST_F(SpansTest, purged_memory_is_zero_again_and_counted) {
  const auto a = spans_->take(4, State::large);
  std::memset(memory(a.first), 1, 4 * granule_size);
  spans_->give(a.first);
  EXPECT_EQ(spans_->dirty_bytes(), 4 * granule_size);
  EXPECT_EQ(spans_->purge_all(), 4 * granule_size);
  EXPECT_EQ(spans_->dirty_bytes(), 0U);
  const auto b = spans_->take(4, State::large);
  EXPECT_TRUE(b.clean);
  EXPECT_FALSE(b.untouched);  // a program may write to it while it is free
  EXPECT_EQ(memory(b.first)[17], std::byte{0});
}

TEST_F(SpansTest, decay_purges_what_has_been_free_for_long_enough) {
  spans_->set_decay(1000);
  const auto a = spans_->take(4, State::large);
  spans_->give(a.first);
  const std::uint64_t when = spans_->window().record(a.first).when;
  spans_->decay(when + 999);
  EXPECT_NE(spans_->dirty_bytes(), 0U);
  spans_->decay(when + 1000);
  EXPECT_EQ(spans_->dirty_bytes(), 0U);
}

TEST_F(SpansTest, a_loop_that_frees_all_each_time_gives_it_back_once) {
  const auto turn = [this] {
    GranuleIndex held[32];
    for (GranuleIndex& h : held) {
      h = spans_->take(2, State::large).first;
      memory(h)[0] = std::byte{1};
    }
    for (const GranuleIndex h : held) spans_->give(h);
  };
  turn();
  const std::uint64_t once = spans_->counters().purged_bytes.read();
  EXPECT_NE(once, 0U);  // above the floor, and nothing is known yet
  turn();
  EXPECT_LE(spans_->counters().purged_bytes.read(), 2 * once);
  const std::uint64_t before = spans_->counters().purged_bytes.read();
  for (int i = 0; i < 10; ++i) turn();
  EXPECT_EQ(spans_->counters().purged_bytes.read(), before);
}

TEST_F(SpansTest, an_impossible_request_fails_and_harms_nothing) {
  EXPECT_EQ(spans_->take(max_granules, State::large).first, no_granule);
  EXPECT_NE(spans_->take(1, State::large).first, no_granule);
}

TEST(bins, spans_of_a_higher_bin_are_always_long_enough) {
  for (std::uint32_t n = 1; n < 5000; ++n) {
    EXPECT_LE(Bins::bin_of(n), Bins::bin_of(n + 1)) << n;
    if (n > Bins::exact) {
      EXPECT_GT(Bins::bin_of(n + n / 16 + 1), Bins::bin_of(n)) << n;  // so little longer, and it is found
    } else {
      EXPECT_EQ(Bins::bin_of(n), n - 1);
    }
  }
}

// Spans of the own bin may be too short. One that is long enough is found behind few of them, and behind more is left alone for
// a longer one: however many are free, the same number is looked at.
TEST_F(SpansTest, finding_a_span_does_not_look_at_all_that_are_free) {
  static_assert(Bins::bin_of(64) == Bins::bin_of(67));
  const auto taken = [this](std::uint32_t granules) {
    const GranuleIndex first = spans_->take(granules, State::large).first;
    EXPECT_NE(spans_->take(1, State::large).first, no_granule);  // keeps neighbours from merging
    return first;
  };
  std::vector<GranuleIndex> all = {taken(40000), taken(67)};
  const GranuleIndex fits = all.back();
  for (unsigned n = 0; n < Bins::few_candidates; ++n) all.push_back(taken(64));
  for (const GranuleIndex i : all) {  // the last one is looked at first
    spans_->give(i);
    spans_->purge_all();
  }
  const GranuleIndex longer = spans_->take(66, State::large).first;
  EXPECT_NE(longer, no_granule);
  EXPECT_NE(longer, fits);
  EXPECT_EQ(spans_->take(64, State::large).first, all.back());
  EXPECT_EQ(spans_->take(66, State::large).first, fits);
}

TEST_F(SpansTest, what_is_left_of_a_dirty_span_keeps_its_age) {
  const GranuleIndex old = spans_->take(3, State::large).first;
  ASSERT_NE(spans_->take(1, State::large).first, no_granule);
  const GranuleIndex young = spans_->take(1, State::large).first;
  ASSERT_NE(spans_->take(1, State::large).first, no_granule);
  spans_->set_decay(1000);
  spans_->give(old, 5000);
  spans_->give(young, 5900);
  ASSERT_EQ(spans_->dirty_bytes(), 4 * granule_size);  // the floor: nothing was purged yet
  ASSERT_EQ(spans_->take(2, State::large).first, old);
  spans_->decay(6100);
  EXPECT_EQ(spans_->dirty_bytes(), granule_size);
}

constexpr std::uint32_t long_to_purge = 2048;  // granules: 128 MiB, some milliseconds

// Gives a long span with pages, whose purge begins in give(), over and over, until seen() has come true meanwhile.
template <typename Seen>
void give_until(Spans& spans, GranuleIndex& purged, const Seen& seen) {
  for (int i = 0; i < 1000 && !seen(); ++i) {
    const GranuleIndex first = spans.take(long_to_purge, State::large).first;
    ASSERT_NE(first, no_granule);
    std::memset(spans.window().address(first), 1, long_to_purge * granule_size);
    __atomic_store_n(&purged, first, __ATOMIC_RELEASE);
    spans.give(first);
  }
}

TEST_F(SpansTest, others_take_and_give_while_a_thread_purges) {
  std::atomic<bool> seen = false, done = false;
  GranuleIndex purged = 0;
  ASSERT_EQ(spans_->take(1, State::large).first, purged);  // granule 0 is never being purged
  std::thread other([&] {
    while (!done && !seen) {
      const GranuleIndex watched = __atomic_load_n(&purged, __ATOMIC_ACQUIRE);
      if (!is_purging(watched)) continue;
      const GranuleIndex mine = spans_->take(1, State::large).first;
      spans_->give(mine);
      if (is_purging(watched)) seen = true;  // taken and given, all within the system call
    }
  });
  give_until(*spans_, purged, [&] { return seen.load(); });
  done = true;
  other.join();
  EXPECT_TRUE(seen);
}

TEST_F(SpansTest, a_forked_child_repairs_what_another_thread_was_purging) {
  std::atomic<bool> seen = false, done = false;
  GranuleIndex purged = 0;
  int status = -1;
  ASSERT_EQ(spans_->take(1, State::large).first, purged);
  std::thread other([&] {
    while (!done && !seen) {
      if (!is_purging(__atomic_load_n(&purged, __ATOMIC_ACQUIRE))) continue;
      spans_->mutex().lock();
      const GranuleIndex watched = __atomic_load_n(&purged, __ATOMIC_ACQUIRE);
      if (is_purging(watched)) {
        seen = true;
        const pid_t child = fork();
        if (child == 0) {
          spans_->reset_after_fork();
          const bool sound = spans_->check_invariants() == nullptr;
          const bool dirty = spans_->dirty_bytes() >= long_to_purge * granule_size;
          _exit(sound && dirty && spans_->take(long_to_purge, State::large).first == watched ? 0 : 1);
        }
        waitpid(child, &status, 0);
      }
      spans_->mutex().unlock();
    }
  });
  give_until(*spans_, purged, [&] { return seen.load(); });
  done = true;
  other.join();
  EXPECT_EQ(status, 0);
}

bool is_resident(const void* p) {
  const std::size_t page = os::page_size();
  unsigned char state = 0;
  return mincore(pointer_to(address_of(p) / page * page), 1, &state) == 0 && (state & 1) != 0;
}

// What a spike leaves behind is not a hundredth of it in records.
TEST_F(SpansTest, records_of_a_long_clean_span_have_no_pages) {
  constexpr std::uint32_t many = 1000;
  std::vector<GranuleIndex> taken;
  for (std::uint32_t i = 0; i < many; ++i) taken.push_back(spans_->take(1, State::large).first);
  const void* const middle = &spans_->window().record(taken[many / 2]);
  ASSERT_TRUE(is_resident(middle));
  for (const GranuleIndex first : taken) spans_->give(first);
  spans_->purge_all();
  EXPECT_FALSE(is_resident(middle));
  EXPECT_STREQ(spans_->check_invariants(), nullptr);
  EXPECT_TRUE(is_resident(&spans_->window().record(taken.front())));
  for (GranuleIndex& first : taken) first = spans_->take(1, State::large).first;
  EXPECT_STREQ(spans_->check_invariants(), nullptr);
  for (const GranuleIndex first : taken) spans_->give(first);
}

Spans* interrupted = nullptr;
GranuleIndex interrupted_at = 0;
volatile std::sig_atomic_t was_interrupted = 0, was_left_out = 0;

// fork in a signal handler: the child goes on with the purge that the handler interrupted. What else the handler does there
// must not get the span, of which pages are still given back.
TEST_F(SpansTest, a_purge_that_a_forking_handler_interrupts_keeps_its_span_in_the_child) {
  interrupted = spans_;
  was_interrupted = 0;
  ASSERT_EQ(spans_->take(1, State::large).first, 0U);
  interrupted_at = 0;
  struct sigaction action = {}, before = {};
  action.sa_handler = [](int) {
    const auto state = interrupted->window().record(interrupted_at).state;
    if (was_interrupted != 0 || state != State::purging || !interrupted->mutex().try_lock()) return;
    interrupted->reset_after_fork();
    was_left_out = interrupted->window().record(interrupted_at).state == State::purging ? 1 : 0;
    was_interrupted = 1;
  };
  ASSERT_EQ(sigaction(SIGALRM, &action, &before), 0);
  const itimerval often = {.it_interval = {0, 500}, .it_value = {0, 500}}, never = {};
  ASSERT_EQ(setitimer(ITIMER_REAL, &often, nullptr), 0);
  give_until(*spans_, interrupted_at, [] { return was_interrupted != 0; });
  ASSERT_EQ(setitimer(ITIMER_REAL, &never, nullptr), 0);
  sigaction(SIGALRM, &before, nullptr);
  EXPECT_EQ(was_interrupted, 1);
  EXPECT_EQ(was_left_out, 1);
  EXPECT_STREQ(spans_->check_invariants(), nullptr);
}

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

  std::byte& at(GranuleIndex i) { return *spans_.window().address(i); }
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
    const Spans::Span s = spans_.take(n, State::large);
    ASSERT_NE(s.first, no_granule);
    expect(s.first, n, s.clean ? Model::clean : Model::dirty);
    // Long enough for a bin above the own one: pages that are there are used before pages that are not.
    EXPECT_FALSE(s.clean && dirty >= n + n / 16 + 1);
    for (GranuleIndex i = s.first; s.clean && i < s.first + n; ++i) ASSERT_EQ(at(i), std::byte{0});
    write(s.first, n);
    set(s.first, n, Model::taken);
    held_.push_back({s.first, n});
  }
  void change(std::size_t k, unsigned what) {
    Held& h = held_[k];
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
          const Spans::Span s = spans_->take(n, State::large);
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
