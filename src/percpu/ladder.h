// SPDX-License-Identifier: MIT OR Apache-2.0
// The fallback ladder: which means of working on core-level buffers this process has. Decided once, by the first allocation.
//
//   mm_cid   restartable sequences; slots are the kernel's dense concurrency ids (Linux 6.3 and later)
//   cpu_id   restartable sequences; slots are cpu numbers
//   getcpu   no restartable sequences: slots are cpu numbers, each with a lock
//   thread   no cpu number either: one slot per thread
#pragma once

#include "arch/sequences.h"
#include "os/rseq_area.h"

#include <cstdint>

namespace terrace::percpu {

enum class Rung : std::uint8_t { mm_cid, cpu_id, getcpu, thread };

struct Ladder {
  Rung rung = Rung::thread;
  bool area_is_ours = false;      // threads must register themselves
  bool valid_after_calls = true;  // whether a transaction that reads as valid after a system call is valid
  const char* reason = "";        // why this rung and not the one above: one sentence for people
  arch::Area area{};              // valid on the rungs with sequences
};

/// Whether the rung works by restartable sequences.
constexpr bool has_sequences(Rung r) noexcept { return r == Rung::mm_cid || r == Rung::cpu_id; }
const char* name_of(Rung r) noexcept;
/// False when the name is none of the four.
bool parse_rung(const char* name, Rung& out) noexcept;

/// What the process has; injectable, so that each decision can be tested.
struct Facts {
  os::RseqArea area;
  bool has_barrier = false;  // membarrier for sequences
  bool has_cpu_number = false;
  unsigned kernel = 0;         // os::kernel_version()
  bool broken_kernel = false;  // sequences are not aborted reliably
};
/// A wish for a rung without sequences asks nothing of rseq and membarrier, where a sandbox may kill for the question; one with
/// registers an area of our own even if libc has left rseq alone.
Facts observe(const Rung* wish) noexcept;
/// `forced` may be null; an impossible wish is refused with a warning on standard error.
Ladder choose(const Facts& facts, const Rung* forced) noexcept;

/// Decides at the first call (TERRACE_RUNG is read then) and remembers. Safe from any thread.
const Ladder& ladder() noexcept;
/// Null: nobody has called ladder().
const Ladder* ladder_if_decided() noexcept;

}  // namespace terrace::percpu
