// SPDX-License-Identifier: MIT OR Apache-2.0
// Static probes on sampled blocks, for tracers that follow processes from outside (bpftrace, OpenTelemetry's eBPF profiler):
// provider, names and first arguments are those of OpenTelemetry's contract for memory profiling. A probe is a no-op
// instruction and a note in the object, and needs nothing at run time. A tracer raises the semaphore that the note names for as
// long as it looks; before, the probe is not come to. Where the build finds no <sys/sdt.h> of systemtap, there are none.
//
//   otel_memory:alloc (address, size, bytes that it stands for)
//   otel_memory:free  (address, size, bytes that it stands for)
#pragma once

#include "profile/table.h"

extern "C" {
extern volatile unsigned short otel_memory_alloc_semaphore __attribute__((visibility("hidden")));
extern volatile unsigned short otel_memory_free_semaphore __attribute__((visibility("hidden")));
}

namespace terrace::profile {

void trace_allocation(const Sample& s) noexcept;
void trace_free(const Sample& s) noexcept;

inline void probe_allocation(const Sample& s) noexcept {
  if (otel_memory_alloc_semaphore != 0) [[unlikely]]
    trace_allocation(s);
}

inline void probe_free(const Sample& s) noexcept {
  if (otel_memory_free_semaphore != 0) [[unlikely]]
    trace_free(s);
}

}  // namespace terrace::profile
