// SPDX-License-Identifier: MIT OR Apache-2.0
#include "percpu/ladder.h"

#include "base/hardened.h"
#include "base/report.h"
#include "os/environment.h"
#include "os/membarrier.h"
#include "os/mutex.h"

#include <atomic>
#include <string_view>

namespace terrace::percpu {
namespace {

static_assert(os::rseq_critical_section - os::rseq_cpu_id == arch::cpu_id_below_critical_section);

constexpr const char* names[] = {"mm_cid", "cpu_id", "getcpu", "thread"};

// Between these two, arm64 kernels lost the abort of a sequence that was preempted and continued on the same cpu.
[[maybe_unused]] constexpr unsigned first_broken_arm64 = 6019000;
[[maybe_unused]] constexpr unsigned last_broken_arm64 = 7000013;

// From this one on, kernels do not look at rseq_cs when a thread was switched out inside a system call, however many bytes are
// registered.
constexpr unsigned first_that_keeps_sections = 6019000;

bool ends_sections_in_calls(const Facts& f) noexcept {
  return f.kernel != 0 && f.kernel < first_that_keeps_sections;  // 0: not known
}

// Sequences write and read links as they are.
constexpr bool can_run_sequences = !hardened;

constexpr unsigned char sanitized_build =
#if defined(TERRACE_SANITIZED)
    1;
#else
    0;
#endif

bool possible(const Facts& f, Rung r) noexcept {
  const bool sequences = os::is_registered(f.area.owner) && f.has_barrier && sanitized_build == 0 && can_run_sequences;
  switch (r) {
    case Rung::mm_cid: return sequences && f.area.feature_size >= os::rseq_size_with_mm_cid;
    case Rung::cpu_id: return sequences;
    case Rung::getcpu: return f.has_cpu_number;
    case Rung::thread: return true;
  }
  return false;
}

const char* why_not_sequences(const Facts& f) noexcept {
  if (sanitized_build != 0) return "sanitizers can not see restartable sequences";
  if (hardened) return "the hardened build clears blocks and checks them, which the fast paths do not";
  if (f.area.owner == os::RseqOwner::none) return "the kernel or a sandbox refuses rseq";
  if (f.area.owner == os::RseqOwner::left_alone)
    return "libc has not registered rseq: glibc.pthread.rseq=0 leaves it to the program, or it is refused";
  if (!f.has_barrier) return "membarrier(PRIVATE_EXPEDITED_RSEQ) is missing";
  return "this arm64 kernel (6.19 to 7.0.13) does not abort sequences reliably";
}

const char* reason_for(const Facts& f, Rung r) noexcept {
  switch (r) {
    case Rung::mm_cid:
      return f.area.owner == os::RseqOwner::libc ? "rseq area of libc, dense slots from mm_cid"
                                                 : "rseq area of our own (libc knows none), dense slots from mm_cid";
    case Rung::cpu_id: return "rseq without mm_cid (Linux before 6.3)";
    case Rung::getcpu: return why_not_sequences(f);
    case Rung::thread: return f.has_cpu_number ? why_not_sequences(f) : "neither rseq nor a cpu number is to be had";
  }
  return "";
}

}  // namespace

const char* name_of(Rung r) noexcept { return names[static_cast<unsigned>(r)]; }

bool parse_rung(const char* name, Rung& out) noexcept {
  for (unsigned i = 0; i < 4; ++i) {
    if (std::string_view(name) == names[i]) {
      out = static_cast<Rung>(i);
      return true;
    }
  }
  return false;
}

Facts observe(const Rung* wish) noexcept {
  Facts f;
  f.kernel = os::kernel_version();
  f.has_cpu_number = os::current_cpu() >= 0;
  if (wish == nullptr || has_sequences(*wish)) {
    f.area = os::find_rseq_area(wish != nullptr);
    f.has_barrier = os::is_registered(f.area.owner) && os::register_sequence_barrier();
  }
#if defined(__aarch64__)
  f.broken_kernel = f.kernel >= first_broken_arm64 && f.kernel <= last_broken_arm64;
#endif
  return f;
}

Ladder choose(const Facts& f, const Rung* forced) noexcept {
  Ladder l;
  Rung r = Rung::mm_cid;
  while (!possible(f, r) || (has_sequences(r) && f.broken_kernel)) r = static_cast<Rung>(static_cast<unsigned>(r) + 1);
  l.reason = reason_for(f, r);
  if (forced != nullptr && !possible(f, *forced)) {
    warn("TERRACE_RUNG", name_of(*forced), "not possible here, ignored");
  } else if (forced != nullptr) {
    r = *forced;
    l.reason = "forced by TERRACE_RUNG";
  }
  l.rung = r;
  if (has_sequences(r)) {
    l.area_is_ours = f.area.owner == os::RseqOwner::ours;
    l.valid_after_calls = ends_sections_in_calls(f);
    l.area = {.critical_section = f.area.offset + os::rseq_critical_section,
              .slot = f.area.offset + (r == Rung::mm_cid ? os::rseq_mm_cid : os::rseq_cpu_id)};
  }
  return l;
}

namespace {
constinit Ladder decided;
constinit std::atomic<bool> ready{false};
constinit os::RankedMutex<os::Rank::ladder> mutex;
}  // namespace

const Ladder* ladder_if_decided() noexcept { return ready.load(std::memory_order_acquire) ? &decided : nullptr; }  // [L1]

const Ladder& ladder() noexcept {
  // [L1] acquire, pairs with the release below: the fields of `decided` are seen.
  if (!ready.load(std::memory_order_acquire)) {
    const os::LockGuard guard(mutex);
    if (!ready.load(std::memory_order_relaxed)) {
      Rung forced{};
      const char* const wish = os::environment("TERRACE_RUNG");
      const bool valid = wish != nullptr && parse_rung(wish, forced);
      if (wish != nullptr && !valid) warn("TERRACE_RUNG", wish, "none of mm_cid, cpu_id, getcpu, thread; ignored");
      decided = choose(observe(valid ? &forced : nullptr), valid ? &forced : nullptr);
      ready.store(true, std::memory_order_release);  // [L1]
    }
  }
  return decided;
}

}  // namespace terrace::percpu
