// SPDX-License-Identifier: MIT OR Apache-2.0
#include "os/memory.h"

#include "base/bits.h"
#include "base/report.h"
#include "os/auxv.h"
#include "os/syscall.h"
#include "os/sysfs.h"
#include "os/yield.h"

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <elf.h>
#include <sys/mman.h>

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

namespace terrace::os {
namespace {

// Without MAP_NORESERVE: what is committed later is accounted, so a request beyond all memory fails instead of being killed.
constexpr int reserve_flags = MAP_PRIVATE | MAP_ANONYMOUS;

long mmap(void* hint, std::size_t bytes, int protection, int flags) noexcept {
  return arch::raw_syscall(SYS_mmap, static_cast<long>(address_of(hint)), static_cast<long>(bytes), protection, flags, -1, 0);
}

void* pointer_or_null(long result) noexcept {
  return failed(result) ? nullptr : pointer_to(static_cast<std::uintptr_t>(result));
}

bool succeeded(long result) noexcept { return !failed(result); }

long on_range(long number, void* address, std::size_t bytes, long third) noexcept {
  return arch::raw_syscall(number, static_cast<long>(address_of(address)), static_cast<long>(bytes), third);
}

}  // namespace

std::size_t page_size() noexcept {
  static std::size_t size = 0;  // written with the same value by whoever comes first
  std::size_t s = __atomic_load_n(&size, __ATOMIC_RELAXED);
  if (s == 0) {
    s = auxiliary_value(AT_PAGESZ);
    if (s == 0) s = 4096;
    __atomic_store_n(&size, s, __ATOMIC_RELAXED);
  }
  return s;
}

void* reserve(std::size_t bytes, void* hint) noexcept { return pointer_or_null(mmap(hint, bytes, PROT_NONE, reserve_flags)); }

namespace {

Mapped map_exactly(void* address, std::size_t bytes, int protection) noexcept {
  const long r = mmap(address, bytes, protection, reserve_flags | MAP_FIXED_NOREPLACE);
  if (r == -EEXIST) return Mapped::occupied;
  if (failed(r)) return Mapped::refused;
  if (pointer_or_null(r) == address) return Mapped::yes;
  release(pointer_or_null(r), bytes);  // a kernel before 4.17 took the address for a hint
  return Mapped::occupied;
}

// Lengthens the mapping that ends at `address`. Needs no mapping more, so it works where mmap has reached the bound on them.
bool lengthen(void* address, std::size_t bytes) noexcept {
  const std::size_t page = page_size();
  void* const last = pointer_to(address_of(address) - page);
  const long r = arch::raw_syscall(SYS_mremap, static_cast<long>(address_of(last)), static_cast<long>(page),
                                   static_cast<long>(page + bytes), 0);
  return pointer_or_null(r) == last;
}

}  // namespace

Mapped look_at(void* address, std::size_t bytes) noexcept {
  const Mapped result = map_exactly(address, bytes, PROT_NONE);
  return result == Mapped::yes && !release(address, bytes) ? Mapped::kept : result;
}

// A mapping of no kind: whether something is in its place is looked at before the kind is.
bool is_vacant(void* address, std::size_t bytes) noexcept {
  const long r = mmap(address, bytes, PROT_NONE, MAP_ANONYMOUS | MAP_FIXED_NOREPLACE);
  if (!failed(r)) release(pointer_or_null(r), bytes);
  return r == -EINVAL || !failed(r);
}

Mapped map_at(void* address, std::size_t bytes) noexcept { return map_exactly(address, bytes, PROT_READ | PROT_WRITE); }

Mapped map_zeroes(void* address, std::size_t bytes) noexcept { return map_exactly(address, bytes, PROT_READ); }

Mapped map_behind(void* address, std::size_t bytes) noexcept {
  const Mapped result = map_at(address, bytes);
  return result == Mapped::refused && lengthen(address, bytes) ? Mapped::yes : result;
}

bool commit(void* address, std::size_t bytes) noexcept {
  return succeeded(on_range(SYS_mprotect, address, bytes, PROT_READ | PROT_WRITE));
}

namespace {

constexpr int drop_locked = 24;  // MADV_DONTNEED_LOCKED, Linux 5.18

constinit std::atomic<bool> met_locked{false};

// Of pages that are locked (mlockall), madvise gives back none, unless they are named.
bool drop(void* address, std::size_t bytes) noexcept {
  const long r = on_range(SYS_madvise, address, bytes, MADV_DONTNEED);
  if (r != -EINVAL) return succeeded(r);
  if (failed(on_range(SYS_madvise, address, bytes, drop_locked))) return false;
  met_locked.store(true, std::memory_order_relaxed);  // relaxed: a hint
  return true;
}

enum class Answer : std::uint8_t {
  unknown,
  obeys,    // the pages go
  ignores,  // "done", and they stay: some user-mode emulators and sandboxes
  refuses,  // sandboxes
  locked,   // refused by a kernel before 5.18, as fresh memory is locked: for as long as it is
};

// One trial tells, on a page that is mapped for it: a trial on the range itself would have to write there first, and that write
// faults in a page, or a huge page.
#if defined(TERRACE_SANITIZED)
__attribute__((no_sanitize("thread")))  // the page may have been another thread's: a system call of ours unmapped it unseen
#endif
Answer
try_drop() noexcept {
  const std::size_t page = page_size();
  void* const where = map(page);
  if (where == nullptr) return Answer::unknown;
  auto* const trial = static_cast<volatile unsigned char*>(where);
  *trial = 1;
  Answer answer = is_locked(where, page) ? Answer::locked : Answer::refuses;
  if (drop(where, page)) answer = *trial == 0 ? Answer::obeys : Answer::ignores;
  release(where, page);
  return answer;
}

// Whoever comes first writes what anybody would write. Relaxed: nothing is published through it.
constinit std::atomic<Answer> known{Answer::unknown};

Answer learn() noexcept {
  const Answer answer = try_drop();
  known.store(answer == Answer::locked ? Answer::unknown : answer, std::memory_order_relaxed);
  return answer;
}

// Memory that is locked by itself, and fresh memory is not, which does not become one mapping with it: before Linux 5.18, and
// with MCL_CURRENT alone. Of the 65,530 mappings that a process may have it gets two for each.
constexpr unsigned most_unlocked = 1000;
bool may_unlock() noexcept {
  static constinit std::atomic<unsigned> unlocked{0};
  return unlocked.load(std::memory_order_relaxed) < most_unlocked &&  // relaxed: only counted
         unlocked.fetch_add(1, std::memory_order_relaxed) < most_unlocked;
}

// Fresh memory in place of what is there. A kernel that refuses has unmapped the range, or has not. The range lies between
// others of ours, where the kernel puts nothing unasked: what is unmapped is ours until there is memory for it.
bool replace(void* address, std::size_t bytes) noexcept {
  constexpr int most_waits = 20000;  // a second
  if (succeeded(mmap(address, bytes, PROT_READ | PROT_WRITE, reserve_flags | MAP_FIXED))) return true;
  for (int i = 0; i < most_waits; ++i) {
    const Mapped now = map_at(address, bytes);
    if (now == Mapped::yes) return true;
    if (now == Mapped::occupied || commit(address, bytes))
      return false;  // commit: changes nothing, and fails where a page is missing
    sleep_briefly();
  }
  report_internal("memory that was to be given back could not be mapped again");
}

}  // namespace

bool is_locked(void* address, std::size_t bytes) noexcept {
  return on_range(SYS_madvise, address, bytes, MADV_DONTNEED) == -EINVAL &&
         succeeded(on_range(SYS_madvise, address, bytes, MADV_NORMAL));  // no sandbox that refuses all requests
}

bool has_met_locked_pages() noexcept { return met_locked.load(std::memory_order_relaxed); }  // relaxed: as above

bool purge(void* address, std::size_t bytes) noexcept {
  Answer answer = known.load(std::memory_order_relaxed);
  if (answer == Answer::unknown) answer = learn();
  const bool may_drop = answer == Answer::obeys || answer == Answer::locked;  // locked: the range may be older than the lock
  if (may_drop && drop(address, bytes)) return true;
  if (answer == Answer::obeys) {  // perhaps a sandbox was entered, or memory locked, since then
    answer = learn();
    if (answer == Answer::obeys) return may_unlock() && replace(address, bytes);
  }
  return (answer == Answer::ignores || answer == Answer::refuses) && replace(address, bytes);
}

bool release(void* address, std::size_t bytes) noexcept { return succeeded(on_range(SYS_munmap, address, bytes, 0)); }

// The target is longer than the source, since mremap then takes a source of one mapping only, and moves all of it or nothing.
// At equal lengths, Linux 6.17 and later move a source of several mappings one after the other, and may stop half-way.
// Kernels before 6.17 unmap the target first and look at the source then.
bool move_pages(void* from, std::size_t bytes, void* to, std::size_t room) noexcept {
  return succeeded(arch::raw_syscall(SYS_mremap, static_cast<long>(address_of(from)), static_cast<long>(bytes),
                                     static_cast<long>(room), MREMAP_MAYMOVE | MREMAP_FIXED,
                                     static_cast<long>(address_of(to))));
}

// Where mmap is refused, it has or has not unmapped the range. If madvise finds all of it mapped, it need not be mapped. And
// where fresh memory is locked, it has all of its pages at once.
bool map_anew(void* address, std::size_t bytes) noexcept {
  const bool mapped = succeeded(mmap(address, bytes, PROT_READ | PROT_WRITE, reserve_flags | MAP_FIXED));
  return drop(address, bytes) || mapped;
}

std::size_t most_mappings() noexcept {
  char text[32];
  if (read_file("/proc/sys/vm/max_map_count", text, sizeof text) <= 0) return usual_mappings;
  std::size_t count = 0;
  for (const char* p = text; *p >= '0' && *p <= '9'; ++p) count = count * 10 + static_cast<std::size_t>(*p - '0');
  return count;
}

void* map(std::size_t bytes) noexcept {
  return pointer_or_null(mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS));
}

}  // namespace terrace::os
