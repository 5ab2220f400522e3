// SPDX-License-Identifier: MIT OR Apache-2.0
// Every sequence with long delays inside, many threads on few cpus, and an oracle: a block has one owner at any time, and none
// is lost. A sequence that is wrong in a place where a preemption matters passes any number of undisturbed runs; the delays
// make preemptions happen exactly there.
//
//   sequences_under_delay [--seconds N] [--must-fail]      --must-fail: for mutants; succeeds if some scenario fails
#include "magazines_apart.h"
#include "os/membarrier.h"
#include "os/rseq_area.h"
#include "owned_blocks.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sched.h>
#include <string_view>
#include <sys/time.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace {

using namespace terrace;
using namespace terrace::under_delay;
using arch::Sequence;
using Clock = std::chrono::steady_clock;

void keep(std::vector<Block*>& hand, void* p) {
  Block& b = checked(p);
  acquired(b);
  hand.push_back(&b);
}

// ---- the words of the malloc fast path: pop_round, push_round, take_all, put_all

Sequence push_somewhere(Block* b) {
  const auto slot = static_cast<unsigned>(arch::load_slot(area.slot));
  const bool own = (b - blocks) % 2 == 0 && slot < slots_with_own;
  // The slot may be another one by now: that is what freeing a block of another home is.
  return own ? arch::push_round<slot_shift, own_offset>(area, slots, origin, own_of_slot_0 - slot, b)
             : arch::push_round<slot_shift, other_offset>(area, slots, origin, 0, b);
}

void put_back(std::vector<Block*>& hand) {
  Block* const b = hand.back();
  released(*b);
  const Sequence r = push_somewhere(b);
  if (r == Sequence::freed_twice) fail("push believes that the block is free");
  if (r == Sequence::done) {
    hand.pop_back();
  } else {
    acquired(*b);
  }
}

// From one word to another, as refill and spill do. What finds no place stays in the hand, without its blocks.
void move_magazine(Rng& rng, std::vector<Block*>& hand, std::vector<std::uint64_t>& spare) {
  const int offsets[] = {0, other_offset, own_offset + 8 * static_cast<int>(rng.next() % own_words)};
  std::uint64_t w = 0;
  if (!spare.empty()) {
    w = spare.back();
    spare.pop_back();
  } else if (arch::take_all(area, {slots + offsets[rng.next() % 3], slot_size}, w) != Sequence::done) {
    return;
  }
  for (unsigned i = rng.next() % 3, tries = 0; tries < 3; ++tries, i = (i + 1) % 3) {
    if (arch::put_all(area, {slots + offsets[i], slot_size}, w) == Sequence::done) return;
  }
  for (; round_below(w) != 0; w -= 8) keep(hand, reinterpret_cast<void*>(round_below(w)));
  spare.push_back(w);
}

std::atomic<std::size_t> in_hands{0};

void rounds_thread(unsigned seed) {
  Rng rng{seed};
  std::vector<Block*> hand;
  std::vector<std::uint64_t> spare;
  while (!stop.load(std::memory_order_relaxed)) {
    const std::uint32_t dice = rng.next() % 8;
    if (dice < 3) {
      void* p = nullptr;
      const Sequence r = rng.next() % 2 == 0 && std::thread::hardware_concurrency() <= slots_with_own
                             ? arch::pop_round<own_offset, own_popped_offset>(area, slots, own_stride, origin, own_of_slot_0, p)
                             : arch::pop_round<0, popped_offset>(area, slots, slot_size, origin, 0, p);
      if (r == Sequence::done) keep(hand, p);
    } else if (dice < 6 && !hand.empty()) {
      put_back(hand);
    } else {
      move_magazine(rng, hand, spare);
    }
  }
  in_hands.fetch_add(hand.size());
  for (Block* b : hand) released(*b);
}

void rounds_setup() {
  make_magazines();
  for (std::size_t i = 0; i < block_count; ++i) {
    std::uint64_t& w = magazine_words[i % magazine_count];
    place_at(w) = reinterpret_cast<std::uintptr_t>(&blocks[i]);
    w += 8;
  }
  for (unsigned i = 0; i < magazine_count; ++i) word_at(i / 2, i % 2 == 0 ? 0 : other_offset) = magazine_words[i];
}

std::size_t count_rounds(std::uint64_t w) {
  std::size_t n = 0;
  for (; w >= 256 && round_below(w) != 0; w -= 8) {
    acquired(checked(reinterpret_cast<void*>(round_below(w))));
    ++n;
  }
  return n;
}

void rounds_check() {
  std::size_t n = in_hands.load();
  for (unsigned s = 0; s < max_slots; ++s) {
    n += count_rounds(word_at(s, 0)) + count_rounds(word_at(s, other_offset));
    for (unsigned i = 0; i < own_words; ++i) n += count_rounds(word_at(s, own_offset + static_cast<int>(8 * i)));
  }
  if (n != block_count) fail("blocks were lost");
}

// ---- the public words: pop_word, push_word

void words_thread(unsigned seed) {
  Rng rng{seed};
  std::vector<Block*> hand;
  const arch::Words words{slots, slot_size};
  while (!stop.load(std::memory_order_relaxed) || !hand.empty()) {
    void* p = nullptr;
    if (rng.next() % 2 == 0 && !stop.load(std::memory_order_relaxed)) {
      const Sequence r = arch::pop_word(area, words, p);
      if (r == Sequence::corrupt) fail("a chain is corrupt");
      if (r == Sequence::done) keep(hand, p);
    } else if (!hand.empty()) {
      Block* const b = hand.back();
      released(*b);
      if (arch::push_word(area, words, 250, b) == Sequence::done) {
        hand.pop_back();
      } else {
        acquired(*b);
      }
    }
  }
}

std::size_t count_chain(Word w) {
  std::size_t n = 0;
  for (; names_something(w); w = chain::rest(w)) {
    acquired(checked(chain::first(w)));
    if (!chain::intact(w) || ++n > block_count) fail("a chain is broken at the end");
  }
  return n;
}

void words_setup() {
  Word w = 0;
  for (std::size_t i = 0; i < block_count; ++i) {
    w = chain::pushed(w, &blocks[i]);
    if (chain::count(w) == 50) {
      word_at(static_cast<unsigned>(i / 50) % max_slots, 0) = w;
      w = 0;
    }
  }
}

void words_check() {
  std::size_t n = 0;
  for (unsigned s = 0; s < max_slots; ++s) n += count_chain(word_at(s, 0));
  if (n != block_count) fail("blocks were lost");
}

// ---- bump: every address is handed out once

std::atomic<std::uint8_t>* bumped;  // calloc: touched only where used
constexpr std::size_t bump_slots = 64, bump_space = std::size_t{1} << 30, bump_bytes = 128;

void bump_setup() {
  bumped = static_cast<std::atomic<std::uint8_t>*>(std::calloc(bump_slots * bump_space / bump_bytes, 1));
  for (unsigned s = 0; s < bump_slots; ++s) {
    word_at(s, 0) = s * bump_space;
    word_at(s, 8) = (s + 1) * bump_space;
  }
}
void bump_thread(unsigned) {
  while (!stop.load(std::memory_order_relaxed)) {
    std::uint64_t start = 0;
    if (arch::bump(area, {slots, slot_size}, bump_bytes, start) != Sequence::done) return;
    if (bumped[start / bump_bytes].exchange(1) != 0) fail("bump gave an address twice");
  }
}
void bump_check() {
  for (unsigned s = 0; s < bump_slots; ++s) {
    for (std::uint64_t a = s * bump_space; a < word_at(s, 0); a += bump_bytes) {
      if (bumped[a / bump_bytes].load() != 1) fail("bump skipped an address");
    }
  }
}

std::uint64_t armings;  // lost counts do not matter
void bump_armed_thread(unsigned) {
  while (!stop.load(std::memory_order_relaxed)) {
    std::uint64_t start = 0, armed = 0;
    if (arch::bump_armed<slot_shift>(area, slots, armed, bump_bytes, start) != Sequence::done) return;
    if (bumped[start / bump_bytes].exchange(1) != 0) fail("bump_armed gave an address twice");
    __atomic_store_n(&armings, __atomic_load_n(&armings, __ATOMIC_RELAXED) + armed, __ATOMIC_RELAXED);
  }
}
void bump_armed_check() {
  bump_check();
  std::printf("    armed %llu times\n", static_cast<unsigned long long>(armings));
  if (armings == 0) fail("nobody has armed the section");
}

// ---- transactions: a counter per slot, incremented by conditional stores and compare-and-exchanges of both widths

std::atomic<std::uint64_t> committed[4];

std::uint64_t begin() {
  arch::store_critical_section(area.critical_section, reinterpret_cast<std::uintptr_t>(&terrace_transaction));
  return static_cast<std::uint64_t>(arch::load_slot(area.slot));
}

int increment(unsigned kind, std::byte* counters) {
  auto* const wide = reinterpret_cast<std::uint64_t*>(counters) + kind;
  const std::ptrdiff_t cs = area.critical_section;
  const std::uint64_t have = __atomic_load_n(wide, __ATOMIC_RELAXED);
  const auto narrow = static_cast<std::uint32_t>(have);
  switch (kind) {
    case 0: return terrace_commit_store64(cs, wide, have + 1);
    case 1: return terrace_commit_cas64(cs, wide, have, have + 1);
    case 2: return terrace_commit_store32(cs, wide, narrow + 1);
    default: return terrace_commit_cas32(cs, wide, narrow, narrow + 1);
  }
}

void transaction_thread(unsigned seed) {
  Rng rng{seed};
  while (!stop.load(std::memory_order_relaxed)) {
    const unsigned kind = rng.next() % 4;
    const std::uint64_t slot = begin();
    if (increment(kind, memory + slot * slot_size) == 0) committed[kind].fetch_add(1);
  }
}
void transaction_check() {
  for (unsigned kind = 0; kind < 4; ++kind) {
    std::uint64_t sum = 0;
    for (unsigned s = 0; s < max_slots; ++s) sum += word_at(s, static_cast<int>(8 * kind));
    if (sum != committed[kind].load()) fail("a conditional store was lost, or happened although it said no");
  }
}

// ---- the disturbance

void disturb(std::vector<std::thread>& threads, Clock::time_point end) {
  Rng rng{42};
  cpu_set_t allowed;
  sched_getaffinity(0, sizeof allowed, &allowed);
  std::vector<int> cpus;
  for (int c = 0; c < CPU_SETSIZE; ++c) {
    if (CPU_ISSET(c, &allowed)) cpus.push_back(c);
  }
  while (Clock::now() < end) {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cpus[rng.next() % std::min<std::size_t>(cpus.size(), 2)], &one);
    std::thread& t = threads[rng.next() % threads.size()];
    if (rng.next() % 4 == 0) {
      pthread_kill(t.native_handle(), SIGUSR1);
    } else {
      pthread_setaffinity_np(t.native_handle(), sizeof one, &one);
    }
    terrace_delays[0] = rng.next() % 3 == 0 ? 20000 : 500;
    terrace_delays[1] = rng.next() % 3 != 0 ? 50000 : 500;
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
}

struct Scenario {
  const char* name;
  void (*setup)();
  void (*body)(unsigned seed);
  void (*check)();
};
const Scenario scenarios[] = {
    {"pop_round, push_round, take_all, put_all", rounds_setup, rounds_thread, rounds_check},
    {"pop_word, push_word", words_setup, words_thread, words_check},
    {"bump", bump_setup, bump_thread, bump_check},
    {"bump_armed", bump_setup, bump_armed_thread, bump_armed_check},
    {"transactions", [] {}, transaction_thread, transaction_check},
};

[[noreturn]] void run(const Scenario& s, std::ptrdiff_t slot_field, double seconds) {
  alarm(60);
  std::signal(SIGUSR1, [](int) {});
  const os::RseqArea found = os::find_rseq_area(true);
  area = {found.offset + os::rseq_critical_section, found.offset + slot_field};
  s.setup();
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < 12; ++i) {
    threads.emplace_back([&s, i] {
      os::register_rseq_for_this_thread();
      s.body(i + 1);
    });
  }
  disturb(threads, Clock::now() + std::chrono::microseconds(static_cast<long>(seconds * 1e6)));
  terrace_delays[0] = terrace_delays[1] = 0;
  stop = true;
  for (std::thread& t : threads) t.join();
  s.check();
  std::uint64_t aborts = 0;
  for (const std::uint64_t n : terrace_abort_counts) aborts += n;
  std::printf("    %llu aborts\n", static_cast<unsigned long long>(aborts));
  std::fflush(stdout);
  std::_Exit(aborts == 0 ? 3 : 0);  // without an abort nothing was tested
}

bool passes(const Scenario& s, std::ptrdiff_t slot_field, double seconds) {
  std::printf("  %s, slots by %s\n", s.name, slot_field == os::rseq_mm_cid ? "mm_cid" : "cpu_id");
  std::fflush(stdout);
  const pid_t pid = fork();
  if (pid == 0) run(s, slot_field, seconds);
  int status = 0;
  waitpid(pid, &status, 0);
  if (WIFSIGNALED(status)) std::printf("    died of signal %d\n", WTERMSIG(status));
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

}  // namespace

int main(int argc, char** argv) {
  double seconds = 2;
  bool must_fail = false;
  for (int i = 1; i < argc; ++i) {
    if (std::string_view(argv[i]) == "--seconds" && i + 1 < argc) seconds = std::atof(argv[++i]);
    if (std::string_view(argv[i]) == "--must-fail") must_fail = true;
  }
  const os::RseqArea found = os::find_rseq_area(true);
  if (found.owner == os::RseqOwner::none || !os::register_sequence_barrier()) {
    std::printf("no restartable sequences here: skipped\n");
    return 77;
  }
  unsigned failures = 0;
  for (const std::ptrdiff_t field : {os::rseq_cpu_id, os::rseq_mm_cid}) {
    if (field == os::rseq_mm_cid && found.feature_size < os::rseq_size_with_mm_cid) continue;
    for (const Scenario& s : scenarios) {
      failures += passes(s, field, seconds) ? 0 : 1;
      if (must_fail && failures != 0) {
        std::printf("found, as it must be\n");
        return 0;
      }
    }
  }
  std::printf("%u scenarios failed\n", failures);
  return must_fail || failures != 0 ? 1 : 0;
}
