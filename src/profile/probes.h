// SPDX-License-Identifier: MIT OR Apache-2.0
// Static probes on sampled blocks, for tracers that follow processes from outside (bpftrace, OpenTelemetry's eBPF profiler):
// provider, names and first arguments are those of OpenTelemetry's contract for memory profiling. A probe is a no-op
// instruction and a note in the object, and needs nothing at run time. Where the build finds no <sys/sdt.h> of systemtap, there
// are none.
//
//   otel_memory:alloc (address, size, bytes that it stands for)
//   otel_memory:free  (address, size, bytes that it stands for)
#pragma once

#include "profile/draw.h"
#include "profile/table.h"

#if __has_include(<sys/sdt.h>)
#include <sys/sdt.h>
#endif

namespace terrace::profile {

inline void probe_allocation([[maybe_unused]] const Sample& s) noexcept {
#if defined(DTRACE_PROBE3)
  const std::uint64_t stands_for = bytes_estimated(s.size, s.weighed, s.period);
  DTRACE_PROBE3(otel_memory, alloc, s.address, s.size, stands_for);
#endif
}

inline void probe_free([[maybe_unused]] const Sample& s) noexcept {
#if defined(DTRACE_PROBE3)
  const std::uint64_t stands_for = bytes_estimated(s.size, s.weighed, s.period);
  DTRACE_PROBE3(otel_memory, free, s.address, s.size, stands_for);
#endif
}

}  // namespace terrace::profile
