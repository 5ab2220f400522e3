// SPDX-License-Identifier: MIT OR Apache-2.0
// Who samples, looks: at most every ten milliseconds, at the resident bytes that the kernel tells. So a process that allocates
// nothing looks at nothing, and none does more than a few system calls for 512 KiB.
#include "introspect/profile_dump.h"

#include "base/parse.h"
#include "base/report.h"
#include "heap/heap.h"
#include "introspect/path.h"
#include "introspect/profile_file.h"
#include "os/clock.h"
#include "os/limits.h"
#include "os/memory.h"
#include "os/metadata.h"
#include "os/sysfs.h"
#include "profile/profiler.h"

namespace terrace::introspect {
namespace {

constexpr std::uint64_t milliseconds_between_looks = 10;

struct DumpRoom {
  ProfileRoom profile;
  char path[path_size];
};

// Relaxed but for `writes`: numbers that decide who writes, and nothing else of another's is read by them.
constinit struct {
  DumpRoom* room = nullptr;
  std::string_view pattern;
  std::uint64_t most = 0, limit = 0;  // bytes
  std::atomic<std::uint64_t> next_look{0};
  // The process that has, since a forked child has not.
  std::atomic<int> wrote_near{0}, wrote_failed{0}, writes{0};
} dump;

// Of the room there is one. A signal's handler that finds it taken goes on.
void write_dump() noexcept {
  const int process = os::process_id();
  int before = dump.writes.load(std::memory_order_relaxed);
  // [D1] acquire, pairs with the release below: the room is no other writer's any more.
  if (before == process || !dump.writes.compare_exchange_strong(before, process, std::memory_order_acquire)) return;
  char* const path = dump.room->path;
  expand(dump.pattern, dump.room->path);
  const int fd = os::create_file(path);
  const bool written = fd >= 0 && write_profile(fd, dump.room->profile) == 0;
  if (fd >= 0) os::close_file(fd);
  warn("TERRACE_PROFILE", path, written ? "the profile is written" : "the profile can not be written");
  dump.writes.store(0, std::memory_order_release);  // [D1]
}

bool is_first(std::atomic<int>& wrote) noexcept {
  const int process = os::process_id();
  return wrote.exchange(process, std::memory_order_relaxed) != process;
}

std::uint64_t resident_bytes() noexcept {
  char text[128];  // pages: of addresses, then those that are resident
  const long n = os::read_file("/proc/self/statm", text, sizeof text);
  std::uint64_t pages = 0;
  const Halves behind = split({text, n > 0 ? static_cast<std::size_t>(n) : 0}, ' ');
  return parse_number(split(behind.behind, ' ').before, pages) ? pages * os::page_size() : 0;
}

// Requests that no process could be given say nothing about memory.
void watch(std::uint64_t failed) noexcept {
  if (failed != 0) {
    if (failed <= dump.limit && is_first(dump.wrote_failed)) write_dump();
    return;
  }
  const std::uint64_t now = os::coarse_milliseconds();
  std::uint64_t next = dump.next_look.load(std::memory_order_relaxed);
  if (now < next || dump.wrote_near.load(std::memory_order_relaxed) == os::process_id()) return;
  if (!dump.next_look.compare_exchange_strong(next, now + milliseconds_between_looks, std::memory_order_relaxed)) return;
  if (resident_bytes() >= dump.most && is_first(dump.wrote_near)) write_dump();
}

}  // namespace

void prepare_profile_dump() noexcept {
  const heap::Options& options = heap::heap.options();
  if (options.profile_dump.empty()) return;
  dump.room = os::map_metadata<DumpRoom>(os::Metadata::profile, 1);
  if (dump.room == nullptr) return;
  os::Limits limits;
  os::read_limits(limits, os::Groups::all);
  dump.limit = limits.memory();
  dump.most = dump.limit / 100 * options.profile_dump_at;
  dump.pattern = options.profile_dump;
  profile::profiler.set_watcher(watch);
}

}  // namespace terrace::introspect
