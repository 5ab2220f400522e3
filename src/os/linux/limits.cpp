// SPDX-License-Identifier: MIT OR Apache-2.0
#include "os/limits.h"

#include "base/bits.h"
#include "base/format.h"
#include "base/parse.h"
#include "os/metadata.h"
#include "os/syscall.h"
#include "os/sysfs.h"

#include <span>
#include <string_view>
#include <sys/resource.h>
#include <sys/sysinfo.h>

namespace terrace::os {
namespace {

// Not on the stack, which may be small.
struct Room {
  char path[768];
  char groups[4096];  // /proc/self/cgroup
};

// The part before the first `end`, which is removed with it.
std::string_view cut(std::string_view& text, char end) noexcept {
  const std::size_t at = min_of(text.find(end), text.size());
  const std::string_view part(text.data(), at);
  text.remove_prefix(min_of(at + 1, text.size()));
  return part;
}

std::string_view above(std::string_view group) noexcept {
  while (!group.empty() && group.back() != '/') group.remove_suffix(1);
  if (!group.empty()) group.remove_suffix(1);
  return group;
}

// Version 1 writes the largest number of pages in place of a word.
bool parse_limit(std::string_view text, std::uint64_t& out) noexcept {
  constexpr std::size_t digits_of_sizes = 18;
  if (text != "max" && (text.size() <= digits_of_sizes || !all_digits(text))) return parse_number(text, out);
  out = Limits::none;
  return true;
}

bool lists(std::string_view names, std::string_view wanted) noexcept {
  while (!names.empty()) {
    if (cut(names, ',') == wanted) return true;
  }
  return false;
}

class Reader {
 public:
  /// Paths that `path` has no room for lead nowhere.
  Reader(const char* root, std::span<char> path) noexcept : root_(root), path_(path) {}

  void read_mounted() noexcept {
    take_memory("", "", "/memory.max");
    if (!memory_told) memory_1("");
  }

  // Lines "number:controllers:path". Version 2 names no controllers and stands last; it is mounted elsewhere where controllers
  // have hierarchies of their own.
  void read_all(std::span<char> text) noexcept {
    std::string_view lines = file(text, "/proc/self/cgroup");
    bool version_1 = false;
    while (!lines.empty()) {
      std::string_view group = cut(lines, '\n');
      cut(group, ':');
      const std::string_view controllers = cut(group, ':');
      const bool of_memory = lists(controllers, "memory"), of_time = lists(controllers, "cpu");
      version_1 = version_1 || of_memory || of_time;
      if (of_memory) look(group, &Reader::memory_1);
      if (of_time) look(group, &Reader::time_1);
      if (controllers.empty() && !version_1) look(group, &Reader::version_2);
    }
  }

  std::uint64_t memory = Limits::none;
  unsigned processors = ~0U;
  bool memory_told = false, processors_told = false;

 private:
  using Look = void (Reader::*)(std::string_view group) noexcept;

  // At the group and at those above it. Where only a part of the hierarchy is mounted, the paths of some lead nowhere.
  void look(std::string_view group, Look at) noexcept {
    for (group = group == "/" ? std::string_view() : group; !group.empty(); group = above(group)) (this->*at)(group);
    (this->*at)(group);
  }
  void version_2(std::string_view group) noexcept {
    take_memory("", group, "/memory.max");
    take_memory("", group, "/memory.high");
    char text[64];
    std::string_view period = of_group(text, "", group, "/cpu.max");
    const std::string_view quota = cut(period, ' ');
    take_processors(quota, period);
  }
  void memory_1(std::string_view group) noexcept { take_memory("/memory", group, "/memory.limit_in_bytes"); }
  void time_1(std::string_view group) noexcept {
    char quota[32], period[32];
    const std::string_view time = of_group(quota, "/cpu", group, "/cpu.cfs_quota_us");
    take_processors(time == "-1" ? "max" : time, of_group(period, "/cpu", group, "/cpu.cfs_period_us"));
  }

  __attribute__((noinline)) void take_memory(std::string_view hierarchy, std::string_view group,
                                             std::string_view name) noexcept {
    char text[32];
    std::uint64_t bytes = 0;
    if (!parse_limit(of_group(text, hierarchy, group, name), bytes)) return;
    memory_told = true;
    memory = min_of(memory, bytes);
  }
  // Microseconds of time in each period, on all processors together.
  __attribute__((noinline)) void take_processors(std::string_view quota, std::string_view period) noexcept {
    std::uint64_t time = 0, of = 0;
    if (!parse_limit(quota, time) || !parse_number(period, of) || time == 0 || of == 0) return;
    processors_told = true;
    processors = static_cast<unsigned>(min_of<std::uint64_t>(processors, (time - 1) / of + 1));  // rounded up
  }

  std::string_view of_group(std::span<char> text, std::string_view hierarchy, std::string_view group,
                            std::string_view name) noexcept {
    return file(text, "/sys/fs/cgroup", hierarchy, group, name);
  }
  // Without the newline at its end. Empty: there is none.
  __attribute__((noinline)) std::string_view file(std::span<char> text, std::string_view a, std::string_view b = {},
                                                  std::string_view c = {}, std::string_view d = {}) noexcept {
    Writer w(path_.data(), path_.size());
    w.text(root_).text(a).text(b).text(c).text(d);
    if (w.length() >= path_.size()) return {};
    w.terminate();
    const long n = read_file(path_.data(), text.data(), text.size());
    std::string_view whole(text.data(), n > 0 ? static_cast<std::size_t>(n) : 0);
    while (!whole.empty() && whole.back() == '\n') whole.remove_suffix(1);
    return whole;
  }

  const char* root_;
  std::span<char> path_;
};

void take_over(const Reader& found, Limits& known) noexcept {
  if (found.memory_told) known.of_groups = found.memory;
  if (found.processors_told) known.processors = found.processors;
}

std::uint64_t resource_limit(int resource) noexcept {
  static_assert(sizeof(rlimit) == 2 * sizeof(std::uint64_t));
  rlimit limit{};
  const bool told = !failed(arch::raw_syscall(SYS_prlimit64, 0, resource, 0, word(&limit)));
  return told ? limit.rlim_cur : Limits::none;  // RLIM_INFINITY is none
}

// Not inlined: files are read on the stack that is left.
__attribute__((noinline)) std::uint64_t machine_memory() noexcept {
  struct sysinfo info {};
  if (failed(arch::raw_syscall(SYS_sysinfo, word(&info)))) return Limits::none;
  return std::uint64_t{info.totalram} * info.mem_unit;
}

// Not inlined: who reads all groups, in the middle of a free, has no stack to spare for this path.
__attribute__((noinline)) void read_mounted(Limits& known, const char* root) noexcept {
  char path[128];
  Reader found(root, path);
  found.read_mounted();
  take_over(found, known);
}

}  // namespace

void read_limits(Limits& known, Groups groups, const char* root) noexcept {
  known.of_process = min_of(min_of(resource_limit(RLIMIT_AS), resource_limit(RLIMIT_DATA)), machine_memory());
  if (groups == Groups::mounted) {
    read_mounted(known, root);
  } else if (const Scratch<Room> room; room.get() != nullptr) {
    Reader found(root, room.get()->path);
    found.read_all(room.get()->groups);
    take_over(found, known);
  }
}

}  // namespace terrace::os
