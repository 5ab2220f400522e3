// SPDX-License-Identifier: MIT OR Apache-2.0
// What it takes to start a program and wait for its end.
//
// startup RUNS [KEY=VALUE...] PROGRAM ARGS     runs PROGRAM that often with these variables, its output thrown away, and prints
// one line of JSON: medians of wall_us, cpu_us (user and system), faults. A process of its own, and small: a fork of Python
// would take longer than what is to be measured.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

extern char** environ;

namespace {

struct Run {
  double wall_us;
  double cpu_us;
  double faults;
};

double microseconds(timeval t) { return static_cast<double>(t.tv_sec) * 1e6 + static_cast<double>(t.tv_usec); }

/// False: it did not run or did not end well.
bool run(char** command, const posix_spawn_file_actions_t& actions, Run& out) {
  const auto begin = std::chrono::steady_clock::now();
  pid_t child;
  if (posix_spawnp(&child, command[0], &actions, nullptr, command, environ) != 0) return false;
  int status;
  rusage usage;
  if (wait4(child, &status, 0, &usage) != child || status != 0) return false;
  const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - begin;
  out = {took.count(), microseconds(usage.ru_utime) + microseconds(usage.ru_stime), static_cast<double>(usage.ru_minflt)};
  return true;
}

double median(std::vector<Run>& runs, double Run::*what) {
  std::sort(runs.begin(), runs.end(), [what](const Run& a, const Run& b) { return a.*what < b.*what; });
  return runs[runs.size() / 2].*what;
}

}  // namespace

int main(int argc, char** argv) {
  int first = 2;
  while (first < argc && std::strchr(argv[first], '=') != nullptr) ++first;
  const std::size_t count = argc > 1 ? std::strtoul(argv[1], nullptr, 10) : 0;
  if (first >= argc || count == 0) {
    std::fputs("usage: startup RUNS [KEY=VALUE...] PROGRAM ARGS\n", stderr);
    return 2;
  }
  for (int i = 2; i < first; ++i) putenv(argv[i]);  // those that the loader reads mean nothing to this process any more
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  std::vector<Run> runs(count);
  for (Run& r : runs) {
    if (run(argv + first, actions, r)) continue;
    std::fprintf(stderr, "%s did not end well\n", argv[first]);
    return 1;
  }
  posix_spawn_file_actions_destroy(&actions);
  std::printf("{\"wall_us\": %.2f, \"cpu_us\": %.2f, \"faults\": %.0f}\n", median(runs, &Run::wall_us),
              median(runs, &Run::cpu_us), median(runs, &Run::faults));
}
