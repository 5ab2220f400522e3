// SPDX-License-Identifier: MIT OR Apache-2.0
// Plans in files, and in memory.
#pragma once

#include "plan.h"

namespace bench::replay {

/// Returns an exit status; says what is wrong with the trace on standard error.
int write_plan(const char* trace, const char* path);

class Plan {
 public:
  /// Of a plan's file, or of a trace. Ends the process with status 2 if the file is neither.
  explicit Plan(const char* path);

  const PlanHeader& header() const { return *reinterpret_cast<const PlanHeader*>(bytes_); }
  const PlanThread& thread(std::size_t i) const { return reinterpret_cast<const PlanThread*>(bytes_ + sizeof(PlanHeader))[i]; }
  const Step* steps(std::size_t i) const { return reinterpret_cast<const Step*>(bytes_ + thread(i).steps_offset); }
  const Leftover* leftovers() const { return reinterpret_cast<const Leftover*>(bytes_ + header().leftovers_offset); }

 private:
  const char* bytes_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace bench::replay
