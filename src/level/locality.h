// SPDX-License-Identifier: MIT OR Apache-2.0
// Where a thread runs, for every hierarchy of levels. An operation looks it up once, so that all its levels agree. If the
// thread moves meanwhile, what it takes or gives is foreign.
#pragma once

#include "percpu/ladder.h"
#include "topology/topology.h"

#include <cstddef>

namespace terrace::level {

struct Locality {
  unsigned slot = 0;       // of the core level; 0 also for a thread without a slot
  CpuId cpu{};             // 0 without a cpu number
  unsigned processor = 0;  // last-level cache
  unsigned node = 0;
};

/// Tells it, by the cpu number only: slots say nothing of where a thread runs.
class Locator {
 public:
  /// `topology` lives as long as this does.
  void open(const percpu::Ladder& ladder, const topology::Topology& topology) noexcept;
  CpuId cpu() const noexcept {
    const int cpu = cpu_id_offset_ != 0 ? arch::load_slot(cpu_id_offset_) : os::current_cpu();
    return CpuId{cpu < 0 ? 0U : static_cast<std::uint32_t>(cpu)};
  }
  Locality here(unsigned slot) const noexcept {
    if (topology_->llc_count == 1 && topology_->node_count == 1) return {.slot = slot};
    return at(cpu(), slot);
  }
  /// As here(), with the cpu even where no level needs it.
  Locality here_on_cpu() const noexcept { return at(cpu(), 0); }

 private:
  Locality at(CpuId cpu, unsigned slot) const noexcept {
    return {.slot = slot, .cpu = cpu, .processor = index(topology_->llc_of(cpu)), .node = topology_->node_of(cpu)};
  }

  const topology::Topology* topology_ = nullptr;
  std::ptrdiff_t cpu_id_offset_ = 0;  // of the cpu number in libc's rseq area; 0: a call tells it
};

}  // namespace terrace::level
