// SPDX-License-Identifier: MIT OR Apache-2.0
// The oracle on one kind of engine:
//
//   oracle --sync cas|restartable [--seconds N] [--threads N] [--seed N] [--delays] [--kept-sections] [--must-fail]
//
// In each association a quarter of the time, and longer where that is not enough for three collections.
// --delays: inside the engine, where it has delay points.
// --kept-sections: as on a kernel that does not end sections in system calls.
// --must-fail: for mutants; succeeds if something is wrong.
#include "lanes.h"
#include "percpu/ladder.h"

#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <sys/wait.h>
#include <unistd.h>

namespace {

using namespace lab_oracle;

struct Options {
  int sync = TERRACE_LAB_CAS;
  double seconds = 2;
  bool must_fail = false;
  bool kept_sections = false;
  Weather weather{0, 1, false};
};

Options parse(int argc, char** argv) {
  Options o;
  o.weather.threads = 2 * static_cast<unsigned>(sysconf(_SC_NPROCESSORS_ONLN));
  for (int i = 1; i < argc; ++i) {
    const std::string_view name = argv[i];
    if (name == "--must-fail") o.must_fail = true;
    if (name == "--kept-sections") o.kept_sections = true;
    if (name == "--delays") o.weather.delays = true;
    if (i + 1 == argc) break;
    if (name == "--sync") o.sync = std::string_view(argv[++i]) == "cas" ? TERRACE_LAB_CAS : TERRACE_LAB_RESTARTABLE;
    if (name == "--seconds") o.seconds = std::atof(argv[++i]);
    if (name == "--threads") o.weather.threads = static_cast<unsigned>(std::atoi(argv[++i]));
    if (name == "--seed") o.weather.seed = static_cast<unsigned>(std::atoi(argv[++i]));
  }
  return o;
}

// Whether collections decide the association.
bool is_decided(int association) { return association == TERRACE_LAB_FLIP || association == TERRACE_LAB_AUTO; }

// Small buffers of all sizing policies in a small space: refills and collections are what is tested.
terrace_lab_config config_of(const Options& o, int association) {
  terrace_lab_config c{};
  c.abi = TERRACE_LAB_ABI;
  c.association = association;
  c.stop_permille = association == TERRACE_LAB_BY_CORE ? 30 : 0;
  const std::size_t tlab = association == TERRACE_LAB_AUTO ? 4096 : 1024;  // much must be unused in all of them
  const std::size_t sizes[] = {tlab, 2048, 8192, 16384};
  for (int l = 0; l < TERRACE_LAB_LEVELS; ++l) {
    c.levels[l].size = sizes[l];
    c.levels[l].max_size = 4 * sizes[l];
    // Flips need buffers that are as large as they may become.
    c.levels[l].sizing = is_decided(association) ? TERRACE_LAB_FIXED : (l + association) % 3;
  }
  c.levels[TERRACE_LAB_CORE].sync = o.sync;
  return c;
}

void print(const char* level, const terrace_lab_counts& c) {
  const auto number = [](std::uint64_t n) { return static_cast<unsigned long long>(n); };
  std::printf(
      "    %s: %llu buffers, %llu neighbours, %llu busy, %llu failed, %llu invalid, %llu sidelined, %llu drained, %llu "
      "foreign\n",
      level, number(c.labs), number(c.neighbours), number(c.busy), number(c.failed), number(c.invalid), number(c.sidelined),
      number(c.drained), number(c.foreign));
}

constexpr std::uint64_t least_collections = 3;

void run(const Options& o, int association) {
  Space space(std::size_t{512} << 10, o.kept_sections);
  World world(space, config_of(o, association));
  Weather weather = o.weather;
  if (is_decided(association)) weather.threads *= 4;  // the more threads, the more is unused in their buffers
  Lanes lanes(world, space.cpus(), weather);
  lanes.run(std::chrono::milliseconds(static_cast<long>(o.seconds * 1000 / 4)), least_collections);
  world.collect_from_outside();
  terrace_lab_counters c;
  terrace_lab_read_counters(world.heap(), &c);
  std::printf("  association %d: %llu collections, %llu flips\n", association, static_cast<unsigned long long>(c.collections),
              static_cast<unsigned long long>(c.flips));
  print("core", c.level[TERRACE_LAB_CORE]);
  print("processor", c.level[TERRACE_LAB_PROCESSOR]);
  std::fflush(stdout);
}

void run_all(const Options& o) {
  std::printf("%s on rung %s\n", o.sync == TERRACE_LAB_CAS ? "compare-and-swap" : "critical sections",
              terrace::percpu::name_of(terrace::percpu::ladder().rung));
  for (const int association : {TERRACE_LAB_BY_THREAD, TERRACE_LAB_BY_CORE, TERRACE_LAB_FLIP, TERRACE_LAB_AUTO})
    run(o, association);
}

// A broken engine may also crash or never come to an end.
bool fails(const Options& o) {
  const pid_t pid = fork();
  if (pid == 0) {
    alarm(static_cast<unsigned>(o.seconds) + 10);
    run_all(o);
    _exit(0);
  }
  int status = 0;
  waitpid(pid, &status, 0);
  if (WIFSIGNALED(status)) std::printf("  died of signal %d\n", WTERMSIG(status));
  return !WIFEXITED(status) || WEXITSTATUS(status) != 0;
}

}  // namespace

int main(int argc, char** argv) {
  const Options o = parse(argc, argv);
  if (!o.must_fail) {
    run_all(o);
    return 0;
  }
  const bool found = fails(o);
  std::printf(found ? "found, as it must be\n" : "not found\n");
  return found ? 0 : 1;
}
