// SPDX-License-Identifier: MIT OR Apache-2.0
// Threads that allocate, die and are born, sometimes only one of them, some not registered with rseq, and somebody who moves
// them between cpus, sends them signals, and changes the delays inside the engine (builds with TERRACE_INJECT).
#pragma once

#include "world.h"

#include <chrono>
#include <cstdint>
#include <list>
#include <optional>
#include <pthread.h>
#include <random>
#include <thread>
#include <vector>

namespace lab_oracle {

struct Weather {
  unsigned threads;
  unsigned seed;
  bool delays;
};

class Lanes {
 public:
  Lanes(World& world, const std::vector<int>& cpus, Weather weather);
  /// For that long, and until there were `collections`, however slow the machine is; then all threads have ended.
  void run(std::chrono::milliseconds duration, std::uint64_t collections);

 private:
  struct Lane {
    std::mutex mutex;                  // held while the thread is born, dies or is disturbed
    std::optional<pthread_t> running;  // nothing while there is none
  };
  bool may_live(unsigned number) const;
  void live(Lane& lane, unsigned number);
  void one_life(Lane& lane, unsigned number, std::mt19937& rng);
  void disturb(std::chrono::steady_clock::time_point end, std::uint64_t collections);
  void disturb(Lane& lane);

  World& world_;
  Weather weather_;
  const std::vector<int>& cpus_;
  std::mt19937 rng_;
  std::list<Lane> lanes_;
  std::atomic<bool> over_{false};
  std::atomic<bool> quiet_{false};  // only the first lane has a thread
};

}  // namespace lab_oracle
