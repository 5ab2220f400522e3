// SPDX-License-Identifier: MIT OR Apache-2.0
// What happens to spans while their pages are given back, with the lock free.
#include "os/clock.h"
#include "os/memory.h"
#include "spans_fixture.h"

#include <atomic>
#include <csignal>
#include <cstring>
#include <functional>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace terrace::span {
namespace {

constexpr std::uint32_t long_to_purge = 2048;  // granules: 128 MiB, some milliseconds

// Gives a long span with pages and has them purged, over and over, until seen() has come true meanwhile. give() itself purges
// it once only: what was needed again at once stays.
template <typename Seen>
void give_until(Spans& spans, GranuleIndex& purged, const Seen& seen) {
  for (int i = 0; i < 1000 && !seen(); ++i) {
    const GranuleIndex first = spans.take(long_to_purge, State::taken).first;
    ASSERT_NE(first, no_granule);
    // A byte in each page: ThreadSanitizer takes a tenth of a second to look at all of them.
    std::byte* const start = spans.window().address(first);
    for (std::size_t at = 0; at < long_to_purge * granule_size; at += os::page_size()) start[at] = std::byte{1};
    __atomic_store_n(&purged, first, __ATOMIC_RELEASE);
    spans.give(first);
    spans.purge_all();
  }
}

// There the other thread looks only if it happens to get the CPU in the middle of a purge.
bool is_one_cpu() { return sysconf(_SC_NPROCESSORS_ONLN) == 1; }

TEST_F(SpansTest, others_take_and_give_while_a_thread_purges) {
  std::atomic<bool> seen = false, done = false;
  GranuleIndex purged = 0;
  ASSERT_EQ(spans_->take(1, State::taken).first, purged);  // granule 0 is never being purged
  std::thread other([&] {
    while (!done && !seen) {
      const GranuleIndex watched = __atomic_load_n(&purged, __ATOMIC_ACQUIRE);
      if (!is_purging(watched)) continue;
      const GranuleIndex mine = spans_->take(1, State::taken).first;
      spans_->give(mine);
      if (is_purging(watched)) seen = true;  // taken and given, all within the system call
    }
  });
  give_until(*spans_, purged, [&] { return seen.load(); });
  done = true;
  other.join();
  if (!seen && is_one_cpu()) GTEST_SKIP() << "no purge was seen";
  EXPECT_TRUE(seen);
}

TEST_F(SpansTest, a_forked_child_repairs_what_another_thread_was_purging) {
  std::atomic<bool> seen = false, done = false;
  GranuleIndex purged = 0;
  int status = -1;
  ASSERT_EQ(spans_->take(1, State::taken).first, purged);
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
          _exit(sound && dirty && spans_->take(long_to_purge, State::taken).first == watched ? 0 : 1);
        }
        waitpid(child, &status, 0);
      }
      spans_->mutex().unlock();
    }
  });
  give_until(*spans_, purged, [&] { return seen.load(); });
  done = true;
  other.join();
  if (!seen && is_one_cpu()) GTEST_SKIP() << "no purge was seen";
  EXPECT_EQ(status, 0);
}

// Where nothing can be mapped any more. Stacks do not grow either.
class NoMoreAddresses {
 public:
  NoMoreAddresses() noexcept {
    getrlimit(RLIMIT_AS, &before_);
    const rlimit none = {.rlim_cur = 1, .rlim_max = before_.rlim_max};
    setrlimit(RLIMIT_AS, &none);
  }
  NoMoreAddresses(const NoMoreAddresses&) = delete;
  NoMoreAddresses& operator=(const NoMoreAddresses&) = delete;
  ~NoMoreAddresses() { setrlimit(RLIMIT_AS, &before_); }

 private:
  rlimit before_ = {};
};

// Memory is short, so a thread waits for a purge; meanwhile a span is given that is long enough, as what was purged is not.
// Whether it was given before the purge was over.
bool give_while_another_waits(Spans& spans, const std::function<bool(GranuleIndex)>& is_purging) {
  const GranuleIndex wanted = spans.take(2 * long_to_purge, State::taken).first;
  const GranuleIndex between = spans.take(1, State::taken).first;
  const GranuleIndex purged = spans.take(long_to_purge, State::taken).first;
  std::memset(spans.window().address(purged), 1, long_to_purge * granule_size);
  std::atomic<int> ready = 0;
  std::atomic<bool> is_over = false;
  const auto once_purging = [&] {
    ++ready;
    while (!is_purging(purged) && !is_over) std::this_thread::yield();
  };
  GranuleIndex got = no_granule;
  std::thread taker([&] {
    once_purging();
    got = spans.take(2 * long_to_purge, State::taken).first;
  });
  bool in_time = false;
  std::thread giver([&] {
    once_purging();
    usleep(1000);
    spans.give_unsettled(wanted);
    in_time = is_purging(purged);
  });
  std::thread purger([&] {
    while (ready != 2) std::this_thread::yield();
    const NoMoreAddresses from_now_on;
    spans.give_unsettled(purged, 0);
    spans.decay(os::coarse_milliseconds());  // what is given meanwhile is not old enough
    is_over = true;
    taker.join();
  });
  purger.join();
  giver.join();
  EXPECT_TRUE(!in_time || got == wanted);
  if (got != no_granule) spans.give(got);
  spans.give(between);
  return in_time;
}

TEST_F(SpansTest, what_is_given_while_a_thread_waits_for_a_purge_is_found) {
#if defined(TERRACE_SANITIZED)
  GTEST_SKIP() << "the sanitizer maps memory itself";
#endif
  spans_->give(spans_->take(1, State::taken).first);
  spans_->purge_all();  // the first one ever maps a page, to see what the system does
  int in_time = 0;
  for (int turn = 0; turn < 5; ++turn) {
    if (give_while_another_waits(*spans_, [this](GranuleIndex i) { return is_purging(i); })) ++in_time;
    spans_->purge_all();
  }
  if (in_time == 0) GTEST_SKIP() << "each purge was over too soon";
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
  for (std::uint32_t i = 0; i < many; ++i) taken.push_back(spans_->take(1, State::taken).first);
  const void* const middle = &spans_->window().record(taken[many / 2]);
  ASSERT_TRUE(is_resident(middle));
  for (const GranuleIndex first : taken) spans_->give(first);
  spans_->purge_all();
  EXPECT_FALSE(is_resident(middle));
  EXPECT_STREQ(spans_->check_invariants(), nullptr);
  EXPECT_TRUE(is_resident(&spans_->window().record(taken.front())));
  for (GranuleIndex& first : taken) first = spans_->take(1, State::taken).first;
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
  ASSERT_EQ(spans_->take(1, State::taken).first, 0U);
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

}  // namespace
}  // namespace terrace::span
