// SPDX-License-Identifier: MIT OR Apache-2.0
// What all programs that measure malloc by a fixed amount of work have in common. A program is a class derived from Program,
// its options in its fields, with work(client, slot), called on every thread at the same time. All have these:
//
//   threads=1   work=1 (how much, per thread)   seed=1
//   latency=1   times every call; slower, so `seconds` are not to be compared
//   check=1     verifies the contents of every block; status 3 if one has changed
//   settled=1   looks at the resident memory a second after everything was freed and the threads have ended
//
// prints one line of JSON: seconds, cpu_seconds, faults, operations (calls of malloc, realloc and free), if asked for
// settled_rss and malloc_p50, malloc_p99, malloc_p999, free_p50, free_p99, free_p999 in nanoseconds, and what the program adds.
// A latency is as fine as the clock; some time-stamp counters step by 10 ns.
#pragma once

#include "client.h"
#include "line.h"
#include "mapped.h"
#include "options.h"
#include "phase.h"
#include "random.h"
#include "threads.h"

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <unistd.h>

namespace bench {

struct Run {
  unsigned threads;
  double work;
  std::uint64_t seed;
  bool latency;
  bool check;
  bool settled;

  explicit Run(const Options& options)
      : threads(static_cast<unsigned>(options.number("threads", 1))),
        work(options.real("work", 1)),
        seed(options.number("seed", 1)),
        latency(options.flag("latency")),
        check(options.flag("check")),
        settled(options.flag("settled")) {
    if (threads < 1 || threads > 4096) Options::fail("that number of threads");
  }

  std::size_t scaled(std::size_t amount) const {
    const double result = static_cast<double>(amount) * work;
    return result < 1 ? 1 : static_cast<std::size_t>(result);
  }
  Random random(unsigned slot) const { return {seed, slot}; }
};

/// What a program may do besides its work; by the main thread, on the first client.
class Program {
 public:
  Program(const Options& options, const Run& run) : options_(options), run_(run) {}

  template <typename Client>
  void prepare(Client&) {}  // before the threads begin
  template <typename Client>
  void finish(Client&) {}  // after they have ended; still measured
  void report(Line&) const {}

 protected:
  std::size_t number(const char* key, std::size_t otherwise, std::size_t least = 1, std::size_t most = SIZE_MAX) const {
    const std::size_t found = options_.number(key, otherwise);
    if (found < least || found > most) Options::fail(key);
    return found;
  }

  const Options& options_;
  const Run run_;
};

/// In nanoseconds, without what the reading of the clock takes.
inline void add_quantiles(Line& line, const Histogram& times, const Ticks& ticks, const char* const (&names)[3]) {
  static constexpr double parts[3] = {0.5, 0.99, 0.999};
  for (int i = 0; i < 3; ++i) {
    const double net = times.quantile(parts[i]) - static_cast<double>(ticks.of_nothing);
    line.add(names[i], (net > 0 ? net : 0) / ticks.per_nanosecond);
  }
}

template <bool timed, bool checked>
void add_clients(Line& line, const Mapped<Client<timed, checked>>& clients) {
  std::uint64_t calls = 0;
  std::uint64_t kept = 0;
  for (const auto& client : clients) {
    calls += client.calls();
    kept += client.taken() - client.given();
  }
  if (kept != 0) {
    std::fprintf(stderr, "the program has not freed everything it allocated\n");
    std::_Exit(1);
  }
  line.add("operations", static_cast<double>(calls));
  if constexpr (timed) {
    Mapped<Times> sum(1);
    for (const auto& client : clients) sum[0].add(client.times());
    const Ticks ticks = Ticks::calibrated();
    add_quantiles(line, sum[0].allocations, ticks, {"malloc_p50", "malloc_p99", "malloc_p999"});
    add_quantiles(line, sum[0].releases, ticks, {"free_p50", "free_p99", "free_p999"});
  }
}

template <typename P, bool timed, bool checked>
void measure(const Options& options, const Run& run, Line& line) {
  P program(options, run);
  options.done();
  Mapped<Client<timed, checked>> clients(run.threads);
  program.prepare(clients[0]);
  Phase phase;
  together(
      run.threads, [&] { phase = Phase(); }, [&](unsigned slot) { program.work(clients[slot], slot); });
  program.finish(clients[0]);
  const Spent spent = phase.spent();
  line.add("seconds", spent.seconds).add("cpu_seconds", spent.cpu_seconds).add("faults", spent.faults);
  add_clients(line, clients);
  program.report(line);
}

/// The whole main().
template <typename P>
int run(int argc, char** argv) {
  static char buffer[1 << 16];
  std::setvbuf(stdout, buffer, _IOFBF, sizeof buffer);  // stdio would allocate one
  const Options options(argc, argv);
  const Run run(options);
  Line line;
  if (run.check) {
    run.latency ? measure<P, true, true>(options, run, line) : measure<P, false, true>(options, run, line);
  } else {
    run.latency ? measure<P, true, false>(options, run, line) : measure<P, false, false>(options, run, line);
  }
  if (run.settled) {
    sleep(1);
    line.add("settled_rss", resident_bytes());
  }
  line.end();
  return 0;
}

}  // namespace bench
