// SPDX-License-Identifier: MIT OR Apache-2.0
#include "os/frames.h"

#include "base/bits.h"
#include "os/auxv.h"
#include "os/io.h"
#include "os/memory.h"
#include "os/syscall.h"

#include <atomic>
#include <cerrno>
#include <cstring>
#include <sys/auxv.h>

#define TERRACE_UNSANITIZED __attribute__((no_sanitize("address"), no_sanitize("thread")))

namespace terrace::os {
namespace {

constexpr std::size_t most_between_frames = 1024 * 1024;
#if defined(__aarch64__)
constexpr std::uint64_t code_bits = (std::uint64_t{1} << 48) - 1;  // above may be a signature of the return address
#else
constexpr std::uint64_t code_bits = ~std::uint64_t{0};
#endif

// The part of the calling thread's stack that was found to be readable: its first page, and in the low bits how many. One word,
// since a signal handler may take samples, too.
constinit thread_local std::uintptr_t readable_stack = 0;
constexpr std::size_t most_remembered = 64;  // pages
static_assert(most_remembered < smallest_page);
// It found no memory there last: the kernel says "no" five times as slowly as "yes". Should some be mapped later, a stack that
// reaches it ends there.
constinit thread_local std::uintptr_t unreadable_page = 0;

std::uintptr_t first_stack_end() noexcept {
  static constinit std::atomic<std::uintptr_t> known{0};  // relaxed: it is the same for all who ask; to ask costs a search
  std::uintptr_t end = known.load(std::memory_order_relaxed);
  if (end == 0) known.store(end = auxiliary_value(AT_RANDOM), std::memory_order_relaxed);
  return end;
}

// Frames end below the thread's own variables, which libc puts above its stack, and those of the first thread below the
// process' arguments and environment, which may be secret. On another stack than the thread's own it is some address above.
std::uintptr_t end_of_frames(std::uintptr_t from) noexcept {
  std::uintptr_t end = ~std::uintptr_t{0};
  for (const std::uintptr_t limit : {address_of(&unreadable_page), first_stack_end()})
    if (from < limit && limit < end) end = limit;
  return end;
}

// Whether it is the end of a stack that stays as long as the calling thread does. Below the first thread's variables lies what
// happens to be mapped there, also coroutines' stacks, which come and go. Those below another thread's stack are told from it
// by the page between them that can not be read: by default libc puts one there.
bool is_end_of_own_stack(std::uintptr_t end) noexcept { return end == first_stack_end() || thread_id() != process_id(); }

/// Addresses in a row that can be read. From the page that holds `known` to the end of the thread's own stack the kernel is
/// asked once in its life, elsewhere once for each sample.
class Readable {
 public:
  explicit Readable(std::uintptr_t known) noexcept
      : begin_(round_down(readable_stack, smallest_page)), bytes_(readable_stack % smallest_page * smallest_page) {
    if (known - begin_ >= bytes_) look_at_stack(known);
  }
  bool has(std::uintptr_t address) noexcept {
    return address - begin_ < bytes_ || has_page(round_down(address, smallest_page));
  }
  /// Two words.
  bool has_frame(std::uintptr_t address) noexcept {
    constexpr std::size_t word = sizeof address;
    return address - begin_ < bytes_ - word || (has(address) && has(address + word));
  }

 private:
  // What was looked at before ends there, too, if this is the same stack.
  __attribute__((noinline)) void look_at_stack(std::uintptr_t known) noexcept {
    const std::uintptr_t before = begin_, limit = end_of_frames(known), end = round_up(limit, smallest_page);
    const std::uintptr_t unknown = before + bytes_ == end ? before : end;
    begin_ = round_down(known, smallest_page);
    bytes_ = smallest_page;
    if (end - begin_ > most_remembered * smallest_page || (begin_ < unreadable_page && unreadable_page < end)) return;
    if (!is_end_of_own_stack(limit)) return;
    while (begin_ + bytes_ < unknown)
      if (!has_page(begin_ + bytes_)) return;
    bytes_ = end - begin_;
    readable_stack = begin_ + bytes_ / smallest_page;
  }

  __attribute__((noinline)) bool has_page(std::uintptr_t page) noexcept {
    if (page == unreadable_page) return false;
    if (!ask(page)) {
      unreadable_page = page;
      return false;
    }
    const bool adjoins = page == begin_ + bytes_;
    if (!adjoins) begin_ = page;
    bytes_ = smallest_page + (adjoins ? bytes_ : 0);
    return true;
  }
  // The kernel reads the set before it looks at what is to be done with it, which is nothing that exists.
  static bool ask(std::uintptr_t page) noexcept {
    return arch::raw_syscall(SYS_rt_sigprocmask, -1, static_cast<long>(page), 0, 8) == -EINVAL;
  }
  std::uintptr_t begin_;
  std::size_t bytes_;
};

// Of whatever is on the stack, other functions' variables and what sanitizers put between them included.
TERRACE_UNSANITIZED std::uint64_t word_at(std::uintptr_t address) noexcept {
  std::uint64_t word;
  __builtin_memcpy(&word, reinterpret_cast<const void*>(address), sizeof word);  // NOLINT(performance-no-int-to-ptr): a stack
  return word;
}

// What is on the stack is not all one function's, and a checked memcpy may say so.
TERRACE_UNSANITIZED void copy_words(void* to, std::uintptr_t from, std::size_t words) noexcept {
#if defined(__x86_64__)
  __asm__ volatile("rep movsq" : "+D"(to), "+S"(from), "+c"(words) : : "memory");
#else
  for (std::size_t i = 0; i < words; ++i) {
    const std::uint64_t word = word_at(from + i * sizeof word);
    std::memcpy(static_cast<std::byte*>(to) + i * sizeof word, &word, sizeof word);
  }
#endif
}

}  // namespace

TERRACE_UNSANITIZED unsigned follow_frames(const void* frame, std::uint64_t* pcs, unsigned size) noexcept {
  Readable readable(address_of(__builtin_frame_address(0)));
  unsigned n = 0;
  for (std::uintptr_t at = address_of(frame); n < size;) {
    if (at % sizeof(at) != 0 || !readable.has_frame(at)) break;
    const std::uint64_t pc = word_at(at + sizeof(at)) & code_bits;
    if (pc < smallest_page) break;  // the outermost frame
    pcs[n++] = pc;
    const std::uint64_t distance = word_at(at) - at;  // the next one lies above
    if (distance - 1 >= most_between_frames) break;
    at += distance;
  }
  return n;
}

TERRACE_UNSANITIZED __attribute__((noinline)) void copy_stack(StackCopy& copy, const void* frame) noexcept {
  copy.frame = address_of(frame);
  std::memset(copy.registers, 0, sizeof copy.registers);
#if defined(__x86_64__)
  __asm__ volatile(
      "leaq 1f(%%rip), %%rax\n"
      "1:\n\t"
      "movq %%rax, (%0)\n\t"
      "movq %%rbx, 24(%1)\n\t"
      "movq %%rbp, 48(%1)\n\t"
      "movq %%rsp, 56(%1)\n\t"
      "movq %%r12, 96(%1)\n\t"
      "movq %%r13, 104(%1)\n\t"
      "movq %%r14, 112(%1)\n\t"
      "movq %%r15, 120(%1)"
      :
      : "r"(&copy.pc), "r"(copy.registers)
      : "rax", "memory");
#else
  __asm__ volatile(
      "adr x9, 1f\n"
      "1:\n\t"
      "str x9, [%0]\n\t"
      "stp x19, x20, [%1]\n\t"
      "stp x21, x22, [%1, #16]\n\t"
      "stp x23, x24, [%1, #32]\n\t"
      "stp x25, x26, [%1, #48]\n\t"
      "stp x27, x28, [%1, #64]\n\t"
      "stp x29, x30, [%1, #80]\n\t"
      "mov x9, sp\n\t"
      "str x9, [%1, #96]"
      :
      : "r"(&copy.pc), "r"(copy.registers)
      : "x9", "memory");
#endif
  const std::uintptr_t sp = copy.registers[StackCopy::stack_pointer];
  Readable readable(sp);
  const std::uintptr_t most = min_of(round_down(end_of_frames(sp), sizeof sp), sp + sizeof copy.data);
  std::uintptr_t end = sp;
  while (end < most && readable.has(end)) end = round_up(end + 1, smallest_page);
  copy.bytes = min_of(end, most) - sp;
  copy_words(copy.data, sp, copy.bytes / sizeof(std::uint64_t));
}

}  // namespace terrace::os
