// SPDX-License-Identifier: MIT OR Apache-2.0
#include "level/locality.h"

namespace terrace::level {

void Locator::open(const percpu::Ladder& ladder, const topology::Topology& topology) noexcept {
  topology_ = &topology;
  cpu_id_offset_ = 0;
  // An area of ours holds no cpu number in threads that have not registered.
  if (!percpu::has_sequences(ladder.rung) || ladder.area_is_ours) return;
  const std::ptrdiff_t in_area = ladder.rung == percpu::Rung::mm_cid ? os::rseq_mm_cid : os::rseq_cpu_id;
  cpu_id_offset_ = ladder.area.slot - in_area + os::rseq_cpu_id;
}

}  // namespace terrace::level
