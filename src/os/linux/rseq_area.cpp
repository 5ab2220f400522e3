// SPDX-License-Identifier: MIT OR Apache-2.0
#include "os/rseq_area.h"

#include "arch/cpu.h"
#include "os/auxv.h"
#include "os/syscall.h"

#include <cerrno>
#include <cstdint>
#include <sched.h>
#include <sys/utsname.h>

// libc's, absent before 2.35. The area itself is 32 bytes from the start, whatever __rseq_size says: glibc 2.36 says 20
// although the kernel fills mm_cid behind it.
extern "C" {
extern const std::ptrdiff_t __rseq_offset __attribute__((weak));  // NOLINT(readability-identifier-naming)
extern const unsigned int __rseq_size __attribute__((weak));      // NOLINT(readability-identifier-naming)
}

namespace terrace::os {
namespace {

constexpr unsigned long auxv_rseq_feature_size = 27;  // AT_RSEQ_FEATURE_SIZE, not in the headers of older libcs
constexpr unsigned long original_feature_size = 20;
#if defined(__x86_64__)
constexpr std::uint32_t signature = 0x53053053;
#else
constexpr std::uint32_t signature = 0xd428bc00;
#endif

// The layout that the kernel documents, with the fields that exist since 6.3. -1: not registered, so that the slot of a
// thread that has not registered yet is -1 on every rung.
struct alignas(32) OwnArea {
  std::uint32_t cpu_id_start = 0;
  std::int32_t cpu_id = -1;
  std::uint64_t critical_section = 0;
  std::uint32_t flags = 0;
  std::uint32_t node_id = 0;
  std::int32_t mm_cid = -1;
  std::uint32_t padding = 0;
};
static_assert(sizeof(OwnArea) == rseq_original_length);

constinit thread_local OwnArea own_area;

constexpr long unregister = 1;  // RSEQ_FLAG_UNREGISTER
constexpr std::ptrdiff_t flags_offset = 16;
constexpr std::uint32_t slices_extended = 1U << 5;  // RSEQ_CS_FLAG_SLICE_EXT_ENABLED, of Linux 7.0: lost with the registration

// glibc registers __rseq_size bytes, but no fewer than 32; so do we.
long ask(std::uintptr_t area, long flags) noexcept {
#if defined(SYS_rseq)
  unsigned long length = rseq_original_length;
  if (&__rseq_size != nullptr && __rseq_size > length) length = __rseq_size;
  return arch::raw_syscall(SYS_rseq, static_cast<long>(area), static_cast<long>(length), flags, static_cast<long>(signature));
#else
  return -ENOSYS;
#endif
}

std::uintptr_t area_at(std::ptrdiff_t offset) noexcept { return arch::thread_pointer() + static_cast<std::uintptr_t>(offset); }

}  // namespace

bool register_rseq_for_this_thread() noexcept {
  if (__atomic_load_n(&own_area.cpu_id, __ATOMIC_RELAXED) >= 0) return true;
  return !failed(ask(reinterpret_cast<std::uintptr_t>(&own_area), 0));
}

bool register_rseq(std::ptrdiff_t offset) noexcept {
  const long r = ask(area_at(offset), 0);
  return !failed(r) || r == -EBUSY;
}

bool unregister_rseq(std::ptrdiff_t offset) noexcept {
  const auto* const flags =
      reinterpret_cast<const std::uint32_t*>(area_at(offset) + flags_offset);  // NOLINT(performance-no-int-to-ptr)
  if ((__atomic_load_n(flags, __ATOMIC_RELAXED) & slices_extended) != 0) return false;
  return !failed(ask(area_at(offset), unregister));
}

RseqArea find_rseq_area(bool insist) noexcept {
  RseqArea area;
  area.feature_size = auxiliary_value(auxv_rseq_feature_size);
  if (area.feature_size == 0) area.feature_size = original_feature_size;
  const bool libc_knows = &__rseq_size != nullptr;
  if (libc_knows && __rseq_size != 0) {
    area.owner = RseqOwner::libc;
    area.offset = __rseq_offset;
  } else if (libc_knows && !insist) {
    area.owner = RseqOwner::left_alone;
  } else if (register_rseq_for_this_thread()) {
    area.owner = RseqOwner::ours;
    area.offset = static_cast<std::ptrdiff_t>(reinterpret_cast<std::uintptr_t>(&own_area) - arch::thread_pointer());
  }
  return area;
}

int current_cpu() noexcept {
#if defined(__x86_64__) || defined(__aarch64__)
  return sched_getcpu();  // vDSO, or libc's rseq area
#endif
}

unsigned kernel_version() noexcept {
  utsname name = {};
  if (arch::raw_syscall(SYS_uname, reinterpret_cast<long>(&name)) != 0) return 0;
  unsigned parts[3] = {0, 0, 0};
  const char* p = name.release;
  for (unsigned& part : parts) {
    while (*p >= '0' && *p <= '9') part = part * 10 + static_cast<unsigned>(*p++ - '0');
    if (*p != '.') break;
    ++p;
  }
  return parts[0] * 1000000 + parts[1] * 1000 + (parts[2] < 1000 ? parts[2] : 999);
}

}  // namespace terrace::os
