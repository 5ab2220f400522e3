// SPDX-License-Identifier: MIT OR Apache-2.0
#include "disturbances.h"

#include "allocator.h"
#include "report.h"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dirent.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

namespace stress {
namespace {

constexpr const char* cpuset_root = "/sys/fs/cgroup/cpuset";
constexpr std::size_t line_size = 4096;

// A limit is only lowered, as a soft one; so what was there at the start can be set again.
constexpr int kinds[] = {RLIMIT_AS, RLIMIT_DATA};
rlimit at_start[2];

bool write_file(const char* path, const char* text) {
  const int fd = open(path, O_WRONLY | O_CLOEXEC);
  if (fd < 0) return false;
  const auto length = static_cast<ssize_t>(std::strlen(text));
  const bool done = write(fd, text, static_cast<std::size_t>(length)) == length;
  close(fd);
  return done;
}

// Without stdio and malloc: one of them is under test, the other one allocates.
std::uint64_t address_space_bytes() {
  char text[128];
  const int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return 0;
  const ssize_t n = read(fd, text, sizeof text - 1);
  close(fd);
  text[n > 0 ? n : 0] = '\0';
  return std::strtoull(text, nullptr, 10) * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
}

void print_list(const cpu_set_t& cpus, char* text) {
  std::size_t length = 0;
  text[0] = '\0';
  for (int cpu = 0; cpu < CPU_SETSIZE && length + 16 < line_size; ++cpu) {
    if (!CPU_ISSET(cpu, &cpus)) continue;
    length += static_cast<std::size_t>(std::snprintf(text + length, line_size - length, "%s%d", length != 0 ? "," : "", cpu));
  }
}

}  // namespace

void lift_limits() {
  for (int i = 0; i < 2; ++i) {
    if (at_start[i].rlim_max != 0) setrlimit(static_cast<__rlimit_resource>(kinds[i]), &at_start[i]);
  }
}

Disturbances::Disturbances(const Disturb& what, std::uint64_t seed) : what_(what), random_(seed) {
  for (int i = 0; i < 2; ++i) getrlimit(static_cast<__rlimit_resource>(kinds[i]), &at_start[i]);
  sched_getaffinity(0, sizeof allowed_, &allowed_);
  if (!what_.affinity) return;
  // A control group of version 1 of our own; elsewhere the affinity of each thread is changed.
  std::snprintf(group_, sizeof group_, "%s/stress-%d", cpuset_root, static_cast<int>(getpid()));
  char cpus[line_size], id[32];
  print_list(allowed_, cpus);
  std::snprintf(id, sizeof id, "%d", static_cast<int>(getpid()));
  if (mkdir(group_, 0755) != 0) {
    group_[0] = '\0';
  } else if (!write_group("cpuset.mems", "0") || !write_group("cpuset.cpus", cpus) || !write_group("cgroup.procs", id)) {
    rmdir(group_);
    group_[0] = '\0';
  }
}

Disturbances::~Disturbances() {
  calm();
  if (group_[0] == '\0') return;
  char id[32], path[128];
  std::snprintf(id, sizeof id, "%d", static_cast<int>(getpid()));
  std::snprintf(path, sizeof path, "%s/cgroup.procs", cpuset_root);
  write_file(path, id);
  rmdir(group_);
}

bool Disturbances::write_group(const char* file, const char* text) const {
  char path[sizeof group_ + 64];
  std::snprintf(path, sizeof path, "%s/%s", group_, file);
  return write_file(path, text);
}

void Disturbances::next() {
  if (limited_) {
    calm();
  } else if (what_.limits && random_.one_in(2)) {
    limit_memory();
  }
  if (what_.affinity && random_.one_in(2)) change_cpus();
  if (what_.trim && random_.one_in(3)) {
    api::malloc_trim(0);
    ++count_;
  }
}

void Disturbances::calm() {
  if (!limited_) return;
  lift_limits();
  limited_ = false;
}

// Below what is in use every request to the kernel fails; a little above it only some do.
void Disturbances::limit_memory() {
  const std::uint64_t used = address_space_bytes();
  const std::uint64_t soft = random_.one_in(3) ? used / 2 : used + random_.below(std::uint64_t{8} << 20);
  const auto i = random_.below(2);
  rlimit limit = at_start[i];
  if (soft >= limit.rlim_max) return;
  limit.rlim_cur = soft;
  limited_ = setrlimit(static_cast<__rlimit_resource>(kinds[i]), &limit) == 0;
  ++count_;
}

void Disturbances::change_cpus() {
  cpu_set_t chosen;
  CPU_ZERO(&chosen);
  const std::uint64_t density = 1 + random_.below(3);
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &allowed_) && random_.one_in(density)) CPU_SET(cpu, &chosen);
  }
  if (CPU_COUNT(&chosen) == 0) chosen = allowed_;
  ++count_;
  if (group_[0] != '\0') {
    char cpus[line_size];
    print_list(chosen, cpus);
    if (!write_group("cpuset.cpus", cpus)) fail("cpuset.cpus = %s: %s", cpus, std::strerror(errno));
    return;
  }
  static DIR* const tasks = opendir("/proc/self/task");
  if (tasks == nullptr) return;
  rewinddir(tasks);
  while (const dirent* const entry = readdir(tasks)) {  // threads come and go: whoever is there
    const int id = std::atoi(entry->d_name);
    if (id > 0) sched_setaffinity(id, sizeof chosen, &chosen);
  }
}

}  // namespace stress
