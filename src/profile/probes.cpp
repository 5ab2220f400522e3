// SPDX-License-Identifier: MIT OR Apache-2.0
#include "profile/probes.h"

#include "profile/draw.h"

#if __has_include(<sys/sdt.h>)
#define _SDT_HAS_SEMAPHORES 1  // NOLINT(bugprone-reserved-identifier): systemtap's
#include <sys/sdt.h>
#else
#define DTRACE_PROBE3(...)  // NOLINT(cppcoreguidelines-macro-usage)
#endif

// weak: a program that the archive is linked to may have probes of this contract, too.
#define TERRACE_SEMAPHORE __attribute__((section(".probes"), weak)) volatile unsigned short
TERRACE_SEMAPHORE otel_memory_alloc_semaphore = 0;
TERRACE_SEMAPHORE otel_memory_free_semaphore = 0;

namespace terrace::profile {
namespace {

// Functions, since there are tracers that take a probe's arguments from the registers of a call's.
__attribute__((noinline)) void alloc([[maybe_unused]] std::uint64_t address, [[maybe_unused]] std::uint64_t size,
                                     [[maybe_unused]] std::uint64_t stands_for) noexcept {
  DTRACE_PROBE3(otel_memory, alloc, address, size, stands_for);
}

__attribute__((noinline)) void free([[maybe_unused]] std::uint64_t address, [[maybe_unused]] std::uint64_t size,
                                    [[maybe_unused]] std::uint64_t stands_for) noexcept {
  DTRACE_PROBE3(otel_memory, free, address, size, stands_for);
}

}  // namespace

void trace_allocation(const Sample& s) noexcept { alloc(s.address, s.size, bytes_estimated(s.size, s.weighed, s.period)); }
void trace_free(const Sample& s) noexcept { free(s.address, s.size, bytes_estimated(s.size, s.weighed, s.period)); }

}  // namespace terrace::profile
