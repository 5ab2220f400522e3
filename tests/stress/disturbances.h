// SPDX-License-Identifier: MIT OR Apache-2.0
// What happens to the whole process while its threads work: memory limits fall below what is in use and rise again, the set of
// CPUs shrinks and grows, all levels are drained. The main thread does it, between two looks at its lanes.
#pragma once

#include "random.h"

#include <cstdint>
#include <sched.h>

namespace stress {

struct Disturb {
  bool limits = false;    // RLIMIT_AS and RLIMIT_DATA
  bool affinity = false;  // of all threads at once; by a cpuset control group where one can be made
  bool trim = false;
};

class Disturbances {
 public:
  Disturbances(const Disturb& what, std::uint64_t seed);
  ~Disturbances();
  Disturbances(const Disturbances&) = delete;
  Disturbances& operator=(const Disturbances&) = delete;

  /// One disturbance, or the end of one. To be called every few milliseconds.
  void next();
  /// No limit holds: before the main thread itself needs memory.
  void calm();

  std::uint64_t count() const { return count_; }
  const char* cpus_by() const { return group_[0] != '\0' ? "cpuset" : "affinity"; }

 private:
  void limit_memory();
  void change_cpus();
  bool write_group(const char* file, const char* text) const;

  Disturb what_;
  Random random_;
  cpu_set_t allowed_{};
  char group_[128] = "";  // directory of our control group; empty: there is none
  bool limited_ = false;
  std::uint64_t count_ = 0;
};

/// The limits of this process are as they were at the start: in a child of fork, where nobody else does it.
void lift_limits();

}  // namespace stress
