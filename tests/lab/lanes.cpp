// SPDX-License-Identifier: MIT OR Apache-2.0
#include "lanes.h"

#include "../support/rseq_calls.h"

#if defined(TERRACE_INJECT)
#include "arch/sequences.h"
#endif

#include <csignal>
#include <sched.h>

namespace lab_oracle {

namespace {

std::size_t any_size(std::mt19937& rng) {
  const unsigned dice = rng() % 64;
  const unsigned most = dice == 0 ? 700 : dice < 6 ? 100 : 10;  // twice as many words
  return 8 * (2 + rng() % (2 * most));
}

void allocate_one(World::Mutator& mutator, std::mt19937& rng) {
  using From = World::Mutator::From;
  if (rng() % 4096 == 0) mutator.collect();  // while there is room in many buffers
  if (rng() % 1024 == 0) mutator.drain();
  if (rng() % 1024 == 0) mutator.install(1 + static_cast<int>(rng() % (TERRACE_LAB_LEVELS - 1)), 16384);
  const unsigned dice = rng() % 32;
  const From from = dice < 18   ? From::thread
                    : dice < 26 ? From::core
                    : dice < 29 ? From::level
                    : dice < 31 ? From::range
                                : From::aligned;
  mutator.allocate(from, static_cast<int>(rng() % TERRACE_LAB_LEVELS), any_size(rng));
}

void set_delays([[maybe_unused]] std::uint32_t before, [[maybe_unused]] std::uint32_t between) {
#if defined(TERRACE_INJECT)
  __atomic_store_n(&terrace_delays[0], before, __ATOMIC_RELAXED);
  __atomic_store_n(&terrace_delays[1], between, __ATOMIC_RELAXED);
#endif
}

}  // namespace

Lanes::Lanes(World& world, const std::vector<int>& cpus, Weather weather)
    : world_(world), weather_(weather), cpus_(cpus), rng_(weather.seed), lanes_(weather.threads) {}

bool Lanes::may_live(unsigned number) const {
  return !over_.load(std::memory_order_relaxed) && (number == 1 || !quiet_.load(std::memory_order_relaxed));
}

void Lanes::one_life(Lane& lane, unsigned number, std::mt19937& rng) {
  {
    const std::lock_guard lock(lane.mutex);
    lane.running = pthread_self();
  }
  if (rng() % 8 == 0) env_test::unregister_libcs_rseq();  // it has no slot, and the core's buffers are not for it
  {
    World::Mutator mutator(world_, number);
    for (unsigned n = rng() % 20000; n != 0 && may_live(number); --n) allocate_one(mutator, rng);
  }
  const std::lock_guard lock(lane.mutex);
  lane.running.reset();
}

void Lanes::live(Lane& lane, unsigned number) {
  std::mt19937 rng(1000 * weather_.seed + number);
  while (!over_.load(std::memory_order_relaxed)) {
    if (may_live(number)) {
      std::thread([&] { one_life(lane, number, rng); }).join();
    } else {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
}

void Lanes::disturb(Lane& lane) {
  const std::lock_guard lock(lane.mutex);
  if (!lane.running) return;
  if (rng_() % 2 == 0) {
    pthread_kill(*lane.running, SIGUSR1);
    return;
  }
  cpu_set_t some;
  CPU_ZERO(&some);
  CPU_SET(cpus_[rng_() % cpus_.size()], &some);
  if (rng_() % 4 == 0) {
    for (const int c : cpus_) CPU_SET(c, &some);
  }
  pthread_setaffinity_np(*lane.running, sizeof some, &some);
}

void Lanes::disturb(std::chrono::steady_clock::time_point end, std::uint64_t collections) {
  terrace_lab_counters some{};
  while (std::chrono::steady_clock::now() < end || some.collections < collections) {
    if (rng_() % 16 == 0) {  // a storm: everybody
      for (Lane& lane : lanes_) disturb(lane);
    } else {
      disturb(*std::next(lanes_.begin(), rng_() % weather_.threads));
    }
    if (rng_() % 128 == 0) quiet_ = !quiet_;
    terrace_lab_read_counters(world_.heap(), &some);
    if (weather_.delays) set_delays(rng_() % 3 == 0 ? 20000 : 300, rng_() % 3 != 0 ? 40000 : 300);
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
}

void Lanes::run(std::chrono::milliseconds duration, std::uint64_t collections) {
  std::signal(SIGUSR1, [](int) {});
  std::vector<std::thread> threads;
  unsigned number = 0;
  for (Lane& lane : lanes_) threads.emplace_back([this, &lane, n = ++number] { live(lane, n); });
  disturb(std::chrono::steady_clock::now() + duration, collections);
  set_delays(0, 0);
  over_ = true;
  for (std::thread& t : threads) t.join();
}

}  // namespace lab_oracle
