// SPDX-License-Identifier: MIT OR Apache-2.0
// include/terrace/cs.h on the rung that TERRACE_RUNG names.
#define TERRACE_CS_PAPER_NAMES
#include "../support/rseq_calls.h"
#include "percpu/ladder.h"
#include "terrace/cs.h"
#include "terrace/malloc.h"
#include "terrace/stats.h"

#include <atomic>
#include <csignal>
#include <gtest/gtest.h>
#include <sched.h>
#include <string>
#include <sys/resource.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace {

struct alignas(64) PerSlot {
  std::int64_t wide = 0;
  std::int32_t narrow = 0;
  std::uint64_t words[2] = {0, 0};
};

std::vector<PerSlot> per_slot() { return std::vector<PerSlot>(terrace_cs_slots()); }

// Repeats until no disturbance comes in between: any single attempt may be invalid.
template <class Attempt>
int eventually(Attempt attempt) {
  for (int i = 0; i < 10000; ++i) {
    const int r = attempt();
    if (r != TERRACE_CS_INVALID) return r;
  }
  return TERRACE_CS_INVALID;
}

TEST(Transaction, stores_commit_and_chain) {
  auto data = per_slot();
  const int r = eventually([&] {
    const int slot = terrace_cs_begin();
    EXPECT_GE(slot, 0);
    EXPECT_LT(static_cast<unsigned>(slot), terrace_cs_slots());
    PerSlot& d = data[static_cast<unsigned>(slot)];
    if (const int first = terrace_cs_store64(&d.wide, 7)) return first;
    if (const int second = terrace_cs_store32(&d.narrow, 8)) return second;  // still open
    EXPECT_EQ(d.wide, 7);
    EXPECT_EQ(d.narrow, 8);
    return terrace_cs_cas64(9, 7, &d.wide);
  });
  terrace_cs_end();
  EXPECT_EQ(r, TERRACE_CS_OK);
}

TEST(Transaction, compare_and_swap_tells_a_mismatch_and_stays_open) {
  auto data = per_slot();
  EXPECT_EQ(eventually([&] {
              PerSlot& d = data[static_cast<unsigned>(terrace_cs_begin())];
              const int wide = terrace_cs_cas64(1, 5, &d.wide);
              const int narrow = terrace_cs_cas32(1, 5, &d.narrow);
              if (wide == TERRACE_CS_INVALID || narrow == TERRACE_CS_INVALID) return int{TERRACE_CS_INVALID};
              EXPECT_EQ(wide, TERRACE_CS_MISMATCH);
              EXPECT_EQ(narrow, TERRACE_CS_MISMATCH);
              EXPECT_EQ(d.wide, 0);
              return terrace_cs_cas32(1, 0, &d.narrow);
            }),
            TERRACE_CS_OK);
}

TEST(Transaction, is_over_after_end_and_invalidate) {
  std::int64_t x = 0;
  terrace_cs_begin();
  terrace_cs_end();
  EXPECT_EQ(terrace_cs_valid(), 0);
  EXPECT_EQ(terrace_cs_store64(&x, 1), TERRACE_CS_INVALID);
  csBegin();
  csInvalidate();
  EXPECT_EQ(csST64C(&x, 1), TERRACE_CS_INVALID);
  EXPECT_EQ(csST32C(&x, 1), TERRACE_CS_INVALID);
  EXPECT_EQ(csCAS64C(1, 0, &x), TERRACE_CS_INVALID);
  EXPECT_EQ(csCAS32C(1, 0, &x), TERRACE_CS_INVALID);
  EXPECT_EQ(x, 0);
}

TEST(Transaction, the_allocator_and_other_sequences_read_as_interference) {
  if (std::string(terrace_rung()) == "getcpu" || std::string(terrace_rung()) == "thread") {
    GTEST_SKIP() << "without sequences, malloc does not touch the slots of transactions";
  }
  std::int64_t x = 0;
  terrace_cs_begin();
  terrace_free(terrace_malloc(24));
  EXPECT_EQ(terrace_cs_valid(), 0);
  EXPECT_EQ(terrace_cs_store64(&x, 1), TERRACE_CS_INVALID);
}

std::int64_t handler_target;
void nested(int) {
  terrace_cs_begin();
  terrace_cs_store64(&handler_target, 1);
  terrace_cs_end();
}

TEST(Transaction, a_signal_always_invalidates) {
  std::signal(SIGUSR1, nested);
  std::int64_t x = 0;
  for (int i = 0; i < 100; ++i) {
    terrace_cs_begin();
    raise(SIGUSR1);
    ASSERT_EQ(terrace_cs_store64(&x, 1), TERRACE_CS_INVALID);
  }
  EXPECT_EQ(x, 0);
}

std::vector<PerSlot>* storm_data = nullptr;
std::atomic<int> storm_handled{0};

void increment_one_slot() {
  std::int64_t n = 0;
  int slot = 0;
  do {
    slot = terrace_cs_begin();
    n = (*storm_data)[static_cast<std::size_t>(slot)].wide + 1;
  } while (terrace_cs_store64(&(*storm_data)[static_cast<std::size_t>(slot)].wide, n) != TERRACE_CS_OK);
  terrace_cs_end();
}

void increment_in_handler(int) {
  increment_one_slot();
  storm_handled.fetch_add(1);
}

TEST(Transaction, a_handler_that_interrupts_a_commit_gets_its_own_through) {
  auto data = per_slot();
  storm_data = &data;
  std::signal(SIGUSR2, increment_in_handler);
  std::atomic<bool> stop{false};
  const pthread_t target = pthread_self();
  std::thread sender([&] {
    while (!stop) pthread_kill(target, SIGUSR2);
  });
  // On one CPU all that are sent in a turn of the sender are one signal.
  cpu_set_t cpus;
  sched_getaffinity(0, sizeof cpus, &cpus);
  const int wanted = CPU_COUNT(&cpus) > 1 ? 2000 : 100;
  std::int64_t expected = 0;
  for (; storm_handled < wanted; ++expected) increment_one_slot();
  stop = true;
  sender.join();
  std::int64_t sum = 0;
  for (const PerSlot& d : data) sum += d.wide;
  EXPECT_EQ(sum, expected + storm_handled);
}

int status_of_child(int (*body)()) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(10);
    _exit(body());
  }
  int status = -1;
  waitpid(child, &status, 0);
  return status;
}

TEST(Transaction, is_over_in_a_forked_child) {
  std::int64_t x = 0;
  for (int i = 0; i < 20; ++i) {
    ASSERT_GE(terrace_cs_begin(), 0);
    ASSERT_EQ(status_of_child([] { return terrace_cs_valid(); }), 0);
  }
  EXPECT_EQ(eventually([&] { return terrace_cs_begin(), terrace_cs_store64(&x, 1); }), TERRACE_CS_OK);
}

#if !defined(TERRACE_SANITIZED)  // their run-time does not survive a fork beside busy threads
TEST(Transaction, works_in_a_child_whose_parent_had_a_thread_in_a_commit) {
  auto data = per_slot();
  storm_data = &data;
  std::atomic<bool> stop{false};
  std::vector<std::thread> busy;
  for (int t = 0; t < 3; ++t) {
    busy.emplace_back([&] {
      while (!stop) increment_one_slot();
    });
  }
  for (int i = 0; i < 60; ++i) {
    ASSERT_EQ(status_of_child([] {
                for (int n = 0; n < 200; ++n) increment_one_slot();
                return 0;
              }),
              0);
  }
  stop = true;
  for (std::thread& t : busy) t.join();
}
#endif

TEST(Transaction, no_increment_is_lost_among_many_threads) {
  auto data = per_slot();
  std::atomic<std::int64_t> committed{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&] {
      std::int64_t mine = 0;
      for (int i = 0; i < 50000; ++i) {
        PerSlot& d = data[static_cast<unsigned>(terrace_cs_begin())];
        const std::int64_t have = __atomic_load_n(&d.wide, __ATOMIC_RELAXED);
        if (terrace_cs_store64(&d.wide, have + 1) == TERRACE_CS_OK) ++mine;
      }
      committed += mine;
    });
  }
  for (std::thread& t : threads) t.join();
  std::int64_t sum = 0;
  for (const PerSlot& d : data) sum += d.wide;
  EXPECT_EQ(sum, committed.load());
  EXPECT_GT(sum, 8 * 50000 / 2);
}

bool by_sequences() { return terrace::percpu::has_sequences(terrace::percpu::ladder().rung); }

#if !defined(TERRACE_SANITIZED)
// In a thread that is taken out of rseq, mm_cid reads as 0 and cpu_id as -1: neither is a slot.
TEST(Transaction, a_thread_that_is_not_registered_has_no_slot) {
  std::vector<PerSlot> data(terrace_cs_slots() + 1);  // the first one is in front of slot 0
  const terrace_cs_words where{data[1].words, sizeof(PerSlot)};
  bool done = false;
  std::thread([&] {
    if (!by_sequences() || !env_test::unregister_libcs_rseq()) return;
    alignas(16) std::uint64_t block[2] = {};
    void* p = nullptr;
    std::uint64_t word = 0;
    EXPECT_EQ(terrace_cs_begin(), -1);
    EXPECT_EQ(terrace_cs_valid(), 0);
    EXPECT_EQ(terrace_cs_reopen(-1), TERRACE_CS_INVALID);
    EXPECT_EQ(terrace_cs_store64(&data[1].wide, 1), TERRACE_CS_NO_SLOT);
    EXPECT_EQ(terrace_cs_store32(&data[1].narrow, 1), TERRACE_CS_NO_SLOT);
    EXPECT_EQ(terrace_cs_cas64(1, 0, &data[1].wide), TERRACE_CS_NO_SLOT);
    EXPECT_EQ(terrace_cs_cas32(1, 0, &data[1].narrow), TERRACE_CS_NO_SLOT);
    EXPECT_EQ(terrace_cs_push(where, 10, block), TERRACE_CS_NO_SLOT);
    EXPECT_EQ(terrace_cs_pop(where, &p), TERRACE_CS_NO_SLOT);
    EXPECT_EQ(terrace_cs_put_all(where, 0xabc0 << 8 | 1), TERRACE_CS_NO_SLOT);
    EXPECT_EQ(terrace_cs_take_all(where, &word), TERRACE_CS_NO_SLOT);
    EXPECT_EQ(terrace_cs_bump(where, 0, &word), TERRACE_CS_NO_SLOT);
    terrace_cs_end();
    done = true;
  }).join();
  if (!done) GTEST_SKIP() << "not by sequences here, or the thread's registration is not libc's";
  for (const PerSlot& d : data) {
    EXPECT_EQ(d.wide, 0);
    EXPECT_EQ(d.narrow, 0);
    EXPECT_EQ(d.words[0], 0U);
    EXPECT_EQ(d.words[1], 0U);
  }
}
#endif

// Until the thread has stayed on a slot over the call, which it does mostly.
TEST(Transaction, reopened_after_a_system_call_it_counts_again) {
  auto data = per_slot();
  const int r = eventually([&] {
    const int slot = terrace_cs_begin();
    std::int64_t* const wide = &data[static_cast<unsigned>(slot)].wide;
    const std::int64_t had = *wide;
    usleep(100);
    if (const int moved = terrace_cs_reopen(slot)) return moved;
    return *wide != had ? int{TERRACE_CS_INVALID} : terrace_cs_store64(wide, had + 1);
  });
  terrace_cs_end();
  EXPECT_EQ(r, TERRACE_CS_OK);
  EXPECT_EQ(terrace_cs_reopen(static_cast<int>(terrace_cs_slots())), TERRACE_CS_INVALID);  // on no such slot
  EXPECT_EQ(terrace_cs_valid(), 0);
}

// How often this thread was switched out so far.
long switches() {
  rusage usage{};
  getrusage(RUSAGE_THREAD, &usage);
  return usage.ru_nvcsw + usage.ru_nivcsw;
}

// What the ladder says of the kernel must be true where somebody could rely on it. On a machine that is slow enough the time is
// over before the thread is switched out: then nobody else ran, and the transaction may stand.
TEST(Transaction, a_system_call_ends_it_where_the_ladder_says_so) {
  if (!by_sequences() || !terrace::percpu::ladder().valid_after_calls) GTEST_SKIP() << "not said here";
  int slept = 0;
  for (int i = 0; i < 1000 && slept < 20; ++i) {
    terrace_cs_begin();
    const long before = switches();
    usleep(100);
    const bool switched = switches() != before;
    const int valid = terrace_cs_valid();
    if (!switched) continue;
    ++slept;
    ASSERT_EQ(valid, 0);
  }
  EXPECT_GT(slept, 0);
}

struct alignas(16) Block {
  std::uint64_t words[2];
};

TEST(Sequences, blocks_come_back_last_in_first_out_and_chains_move_whole) {
  auto data = per_slot();
  const terrace_cs_words where{data[0].words, sizeof(PerSlot)};
  std::vector<Block> blocks(3);
  for (Block& b : blocks) ASSERT_EQ(eventually([&] { return terrace_cs_push(where, 3, &b); }), TERRACE_CS_OK);
  std::size_t got = 0;
  void* p = nullptr;
  // The thread may have moved between slots; in all of them together there are three blocks.
  std::uint64_t chain = 0;
  for (int i = 0; i < 1000 && got < 3; ++i) {
    if (terrace_cs_pop(where, &p) == TERRACE_CS_OK) ++got;
    if (terrace_cs_take_all(where, &chain) == TERRACE_CS_OK) {
      got += chain & 0xff;
    }
    std::this_thread::yield();
  }
  EXPECT_EQ(got, 3U);
}

TEST(Sequences, a_full_word_refuses_and_an_occupied_one_keeps_its_chain) {
  auto data = per_slot();
  for (PerSlot& d : data) d.words[0] = 0xabc0 << 8 | 2;
  const terrace_cs_words where{data[0].words, sizeof(PerSlot)};
  Block b{};
  EXPECT_EQ(eventually([&] { return terrace_cs_push(where, 2, &b); }), TERRACE_CS_FULL);
  EXPECT_EQ(eventually([&] { return terrace_cs_put_all(where, 0xdef0 << 8 | 1); }), TERRACE_CS_OCCUPIED);
  std::uint64_t chain = 0;
  EXPECT_EQ(eventually([&] { return terrace_cs_take_all(where, &chain); }), TERRACE_CS_OK);
  EXPECT_EQ(chain, 0xabc0U << 8 | 2);
}

TEST(Sequences, bump_gives_each_address_once_and_stops_at_the_limit) {
  auto data = per_slot();
  for (PerSlot& d : data) d.words[0] = 4096, d.words[1] = 4096 + 64;
  const terrace_cs_words where{data[0].words, sizeof(PerSlot)};
  std::uint64_t start = 0;
  ASSERT_EQ(eventually([&] { return terrace_cs_bump(where, 64, &start); }), TERRACE_CS_OK);
  EXPECT_EQ(start, 4096U);
  for (PerSlot& d : data) d.words[0] = d.words[1];
  EXPECT_EQ(eventually([&] { return terrace_cs_bump(where, 1, &start); }), TERRACE_CS_FULL);
  EXPECT_EQ(eventually([&] { return terrace_cs_bump(where, ~std::size_t{0}, &start); }), TERRACE_CS_FULL);
}

}  // namespace
