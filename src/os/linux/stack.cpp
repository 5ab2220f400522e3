// SPDX-License-Identifier: MIT OR Apache-2.0
#include "os/stack.h"

#include "base/bits.h"

#include <atomic>
#include <dlfcn.h>
#include <link.h>
#include <unistd.h>

// glibc's; musl has none. It reads the tables of the exception handlers, which are there without frame pointers (ADR 16).
extern "C" int backtrace(void** frames, int size) __attribute__((weak));

namespace terrace::os {
namespace {

constexpr unsigned most_frames = 32;
constexpr unsigned own_frames = 8;  // more than the innermost ones that are in this object

using Backtrace = int (*)(void** frames, int size);
constinit Backtrace unwind = backtrace;  // known when `prepared` is set
constinit bool libunwind_is_preferred = false;

std::atomic<bool> prepared{false}, begun{false};
struct Range {
  std::uintptr_t begin = 0, end = 0;
};
constinit Range own_object;  // known in advance: to ask the loader takes its lock, which somebody who allocates may hold
constinit thread_local bool inside = false;  // the unwinder allocates, or a handler has interrupted it

int find_own_object(dl_phdr_info* object, std::size_t, void*) noexcept {
  const auto here = reinterpret_cast<std::uintptr_t>(&find_own_object);
  Range range{.begin = object->dlpi_addr, .end = object->dlpi_addr};
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const auto& part = object->dlpi_phdr[i];
    if (part.p_type == PT_LOAD) range.end = max_of<std::uintptr_t>(range.end, object->dlpi_addr + part.p_vaddr + part.p_memsz);
  }
  if (here < range.begin || here >= range.end) return 0;
  own_object = range;
  return 1;
}

bool is_own(const void* code) noexcept {
  const auto address = reinterpret_cast<std::uintptr_t>(code);
  return address >= own_object.begin && address < own_object.end;
}

void look_for_libunwind() noexcept {
  void* const library = dlopen("libunwind.so.8", RTLD_NOW);
  if (library == nullptr) return;
  if (auto* const f = reinterpret_cast<Backtrace>(dlsym(library, "unw_backtrace"))) unwind = f;
}

bool loader_is_at_work() noexcept {
#if defined(__GLIBC__)
  return _r_debug.r_state != r_debug::RT_CONSISTENT;
#else
  return false;
#endif
}

// The first backtrace() loads libgcc. Before libc is initialised (it has no environment then) that would initialise libc as
// well, with nothing known of arguments and environment; and the loader, which allocates, must not be entered in the middle of
// its work. Else the next capture tries.
bool is_prepared() noexcept {
  // [S1] acquire, pairs with the release below: the range is seen.
  if (prepared.load(std::memory_order_acquire)) return true;
  if (unwind == nullptr || environ == nullptr || loader_is_at_work()) return false;
  if (begun.exchange(true, std::memory_order_relaxed)) return false;  // relaxed: one of them does it
  void* frames[1];
  dl_iterate_phdr(find_own_object, nullptr);
  if (libunwind_is_preferred) look_for_libunwind();
  unwind(frames, 1);
  prepared.store(true, std::memory_order_release);  // [S1]
  return true;
}

}  // namespace

void prefer_libunwind() noexcept { libunwind_is_preferred = true; }

unsigned capture_stack(const void** frames, unsigned size) noexcept {
  if (inside) return 0;
  inside = true;
  if (!is_prepared()) {
    inside = false;
    return 0;
  }
  void* here[most_frames];
  // Who wants more has room for ours among them.
  void** const all = size > most_frames ? const_cast<void**>(frames) : here;
  const int found = unwind(all, static_cast<int>(size > most_frames ? size : min_of(size + own_frames, most_frames)));
  unsigned n = 0;
  for (int i = 0; i < found && n < size; ++i) {
    if (n == 0 && is_own(all[i])) continue;
    frames[n++] = all[i];
  }
  inside = false;
  return n;
}

void describe_code(Writer& out, const void* address) noexcept {
  Dl_info info;
  if (dladdr(address, &info) == 0 || info.dli_fname == nullptr) {
    out.pointer(address);
    return;
  }
  std::string_view path(info.dli_fname);
  const std::size_t slash = path.rfind('/');
  if (slash != std::string_view::npos) path.remove_prefix(slash + 1);
  const auto offset = [address](const void* from) {
    return static_cast<std::uint64_t>(static_cast<const char*>(address) - static_cast<const char*>(from));
  };
  out.text(path).text("+0x").hex(offset(info.dli_fbase));
  if (info.dli_sname != nullptr) out.text(" (").text(info.dli_sname).text("+0x").hex(offset(info.dli_saddr)).text(")");
}

}  // namespace terrace::os
