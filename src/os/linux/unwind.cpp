// SPDX-License-Identifier: MIT OR Apache-2.0
// Walks the stack by rules that are found once for each return address. A library that takes the place of one that was unloaded
// may be met with the other's rules: so nothing is read but what is mapped, and a frame lies above the one before.
#include "base/bits.h"
#include "os/frame_rules.h"
#include "os/memory.h"
#include "os/syscall.h"

#include <atomic>
#include <cstddef>
#include <ucontext.h>

namespace terrace::os {

#if defined(__x86_64__)
namespace {

// A rule in 64 bits, and the address that it is for, xor the rule: who reads while another writes sees that they do not fit.
struct Remembered {
  std::atomic<std::uint64_t> key, rule;
};
constexpr unsigned remembered_bits = 12;
constinit Remembered remembered[1U << remembered_bits];

std::uint64_t packed(const FrameRule& r) noexcept {
  return static_cast<std::uint64_t>(r.cfa) | static_cast<std::uint64_t>(r.fp) << 8 |
         std::uint64_t{static_cast<std::uint16_t>(r.fp_offset)} << 16 |
         std::uint64_t{static_cast<std::uint32_t>(r.cfa_offset)} << 32;
}
FrameRule unpacked(std::uint64_t v) noexcept {
  FrameRule r;
  r.cfa = static_cast<FrameRule::Cfa>(v & 0xff);
  r.fp = static_cast<FrameRule::Fp>(v >> 8 & 0xff);
  r.fp_offset = static_cast<std::int16_t>(v >> 16 & 0xffff);
  r.cfa_offset = static_cast<std::int32_t>(v >> 32);
  return r;
}

FrameRule rule_for(std::uintptr_t pc) noexcept {
  Remembered& m = remembered[pc * 0x9e3779b97f4a7c15U >> (64 - remembered_bits)];
  // relaxed: the two words tell by themselves whether they belong together.
  const std::uint64_t rule = m.rule.load(std::memory_order_relaxed);
  if ((m.key.load(std::memory_order_relaxed) ^ rule) == pc) return unpacked(rule);
  const FrameRule found = find_frame_rule(pc);
  const std::uint64_t fresh = packed(found);
  m.rule.store(fresh, std::memory_order_relaxed);
  m.key.store(pc ^ fresh, std::memory_order_relaxed);
  return found;
}

// Stack of the calling thread that is known to be mapped.
struct KnownStack {
  std::uintptr_t begin = 0, end = 0;

  __attribute__((no_sanitize("address"))) bool read(std::uintptr_t at, std::uintptr_t& value) noexcept {
    if (at % sizeof value != 0 || ((at < begin || at >= end) && !extend_to(at))) return false;
    value = *reinterpret_cast<const std::uintptr_t*>(pointer_to(at));
    return true;
  }

 private:
  static constexpr std::size_t most = 1 << 20;
  static bool is_mapped(std::uintptr_t from, std::size_t bytes) noexcept {
    unsigned char resident[most / smallest_page];
    return !failed(arch::raw_syscall(SYS_mincore, static_cast<long>(from), static_cast<long>(bytes),
                                     static_cast<long>(address_of(resident))));
  }
  // With all between; else the page alone.
  bool extend_to(std::uintptr_t at) noexcept {
    const std::size_t page = page_size();
    const std::uintptr_t first = round_down(at, page);
    if (at >= end && first + page - end <= most && is_mapped(end, first + page - end)) {
      end = first + page;
    } else if (at < begin && begin - first <= most && is_mapped(first, begin - first)) {
      begin = first;
    } else if (is_mapped(first, page)) {
      begin = first;
      end = first + page;
    } else {
      return false;
    }
    return true;
  }
};
constinit thread_local KnownStack known;

struct Registers {
  std::uintptr_t pc, sp, fp;
};

// The registers that a signal interrupted.
bool leave_signal(KnownStack& stack, Registers& r) noexcept {
  const auto greg = [&](int number, std::uintptr_t& value) {
    const std::size_t offset = offsetof(ucontext_t, uc_mcontext.gregs) + static_cast<std::size_t>(number) * sizeof(greg_t);
    return stack.read(r.sp + offset, value);
  };
  Registers before{};
  if (!greg(REG_RIP, before.pc) || !greg(REG_RSP, before.sp) || !greg(REG_RBP, before.fp)) return false;
  r = before;
  return true;
}

enum class Step : std::uint8_t { done, end, unknown };

// To the caller.
Step leave(const FrameRule& rule, KnownStack& stack, Registers& r) noexcept {
  using Cfa = FrameRule::Cfa;
  const auto offset = static_cast<std::uintptr_t>(std::int64_t{rule.cfa_offset});
  std::uintptr_t cfa = 0;
  switch (rule.cfa) {
    case Cfa::none: return Step::end;
    case Cfa::unknown: return Step::unknown;
    case Cfa::of_signal: return leave_signal(stack, r) ? Step::done : Step::unknown;
    case Cfa::from_sp: cfa = r.sp + offset; break;
    case Cfa::from_fp: cfa = r.fp + offset; break;
    case Cfa::at_fp:
      if (!stack.read(r.fp + offset, cfa)) return Step::unknown;
      break;
  }
  if (cfa <= r.sp) return Step::unknown;
  const auto fp_offset = static_cast<std::uintptr_t>(std::int64_t{rule.fp_offset});
  std::uintptr_t fp = r.fp, pc = 0;
  if (rule.fp == FrameRule::Fp::at_cfa && !stack.read(cfa + fp_offset, fp)) return Step::unknown;
  if (rule.fp == FrameRule::Fp::at_fp && !stack.read(r.fp + fp_offset, fp)) return Step::unknown;
  if (!stack.read(cfa - sizeof pc, pc)) return Step::unknown;
  r = {.pc = pc, .sp = cfa, .fp = fp};
  return pc == 0 ? Step::end : Step::done;
}

}  // namespace

__attribute__((noinline)) int unwind_by_rules(void** frames, int size) noexcept {
  Registers r;
  asm volatile("lea 0(%%rip), %0\n\tmov %%rsp, %1\n\tmov %%rbp, %2" : "=&r"(r.pc), "=&r"(r.sp), "=&r"(r.fp));
  KnownStack stack = known;
  int n = 0;
  Step step = Step::done;
  bool exact = true;  // else r.pc is behind a call, which may be the last instruction of its function
  while (n < size) {
    const FrameRule rule = rule_for(exact ? r.pc : r.pc - 1);
    step = leave(rule, stack, r);
    if (step != Step::done) break;
    frames[n++] = pointer_to(r.pc);
    exact = rule.cfa == FrameRule::Cfa::of_signal;
  }
  known = stack;
  return step == Step::unknown ? -1 : n;
}

#else

int unwind_by_rules(void** /*frames*/, int /*size*/) noexcept { return -1; }

#endif

}  // namespace terrace::os
