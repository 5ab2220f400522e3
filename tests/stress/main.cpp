// SPDX-License-Identifier: MIT OR Apache-2.0
// An oracle for any malloc: threads allocate, check, change, pass on and free stamped blocks; see block.h and lane.h.
//
//   stress [--seconds S | --operations N] [--threads N] [--seed N] [--size-limit BYTES] [--signals] [--fork]
//          [--signal-interval MICROSECONDS] [--fork-interval MILLISECONDS] [--limits] [--affinity] [--trim]
//
// --limits, --affinity and --trim disturb the whole process, see disturbances.h; while limits change, requests may fail.
// With --operations it ends when all threads together have done so many, however long that takes.
// Ends with 0 and a line of figures, or with 1 and the first thing that was wrong.
#include "as_asked.h"
#include "lane.h"
#include "report.h"

#include <cerrno>
#include <csignal>
#include <cstring>
#include <ctime>
#include <new>
#include <poll.h>
#include <sys/time.h>
#include <unistd.h>

namespace {

using namespace stress;  // NOLINT(google-build-using-namespace): the program

constexpr double longest_silence = 60;  // seconds in which every lane must have done something
constexpr int poll_milliseconds = 20;

double now() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

[[noreturn]] void usage() {
  std::fprintf(stderr,
               "usage: stress [--seconds S | --operations N] [--threads N] [--seed N] [--size-limit BYTES] [--signals] "
               "[--signal-interval MICROSECONDS] [--fork] [--fork-interval MILLISECONDS] [--limits] [--affinity] [--trim]\n");
  std::exit(2);
}

Options parse(int argc, char** argv) {
  Options o;
  for (int i = 1; i < argc; ++i) {
    const std::string_view name = argv[i];
    if (name == "--signals") {
      o.signals = true;
    } else if (name == "--fork") {
      o.forks = true;
    } else if (name == "--limits") {
      o.disturb.limits = true;
    } else if (name == "--affinity") {
      o.disturb.affinity = true;
    } else if (name == "--trim") {
      o.disturb.trim = true;
    } else if (i + 1 == argc) {
      usage();
    } else if (name == "--seconds") {
      o.seconds = std::atof(argv[++i]);
    } else if (name == "--operations") {
      o.operations = std::strtoull(argv[++i], nullptr, 0);
    } else if (name == "--threads") {
      o.threads = static_cast<unsigned>(std::atoi(argv[++i]));
    } else if (name == "--signal-interval") {
      o.signal_interval = std::atol(argv[++i]);
    } else if (name == "--fork-interval") {
      o.fork_interval = std::atol(argv[++i]);
    } else if (name == "--seed") {
      o.seed = std::strtoull(argv[++i], nullptr, 0);
    } else if (name == "--size-limit") {
      o.size_limit = std::strtoull(argv[++i], nullptr, 0);
    } else {
      usage();
    }
  }
  if (o.threads == 0 || o.seconds <= 0 || o.size_limit == 0 || o.fork_interval <= 0) usage();
  if (o.signal_interval <= 0 || o.signal_interval >= 1'000'000) usage();
  return o;
}

constinit World world;
std::atomic<unsigned> signals_seen{0};

void* thread_main(void* argument) {
  const auto lane = static_cast<unsigned char>(reinterpret_cast<std::uintptr_t>(argument));
  live(world, lane);
  while (write(world.finished_pipe[1], &lane, 1) < 0 && errno == EINTR) {
  }
  return nullptr;
}

void start(unsigned lane) {
  ++world.lanes[lane].generation;
  const int error =
      pthread_create(&world.lanes[lane].thread, nullptr, thread_main, reinterpret_cast<void*>(std::uintptr_t{lane}));
  if (error != 0) fail("pthread_create: %s", std::strerror(error));
  world.threads.fetch_add(1, std::memory_order_relaxed);
}

// Touches a little stack and does not allocate: what handlers of careful programs do. No SA_RESTART: system calls end with
// EINTR.
void on_alarm(int) {
  volatile char stack[512];
  for (volatile char& c : stack) c = 1;
  signals_seen.fetch_add(1, std::memory_order_relaxed);
}

void start_signals() {
  struct sigaction action = {};
  action.sa_handler = on_alarm;
  sigaction(SIGALRM, &action, nullptr);
  const timeval interval = {.tv_sec = 0, .tv_usec = world.options.signal_interval};
  const itimerval timer = {.it_interval = interval, .it_value = interval};
  setitimer(ITIMER_REAL, &timer, nullptr);
}

// Signals go to the lanes, not to the main thread.
void set_alarm_blocked(bool blocked) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGALRM);
  pthread_sigmask(blocked ? SIG_BLOCK : SIG_UNBLOCK, &set, nullptr);
}

std::uint64_t operations_done() {
  std::uint64_t sum = 0;
  for (unsigned i = 0; i < world.options.threads; ++i) sum += world.lanes[i].operations.load(std::memory_order_relaxed);
  return sum;
}

class Watch {
 public:
  void look(double time) {
    for (unsigned i = 0; i < world.options.threads; ++i) {
      const std::uint64_t done = world.lanes[i].operations.load(std::memory_order_relaxed);
      if (done != done_[i] || since_[i] == 0) since_[i] = time;
      done_[i] = done;
      if (time - since_[i] > longest_silence)
        fail("no end: the thread of lane %u does nothing since %.0f s", i, longest_silence);
    }
  }

 private:
  double since_[256] = {};
  std::uint64_t done_[256] = {};
};

bool is_over(double end) {
  return world.options.operations != 0 ? operations_done() >= world.options.operations : now() >= end;
}

void run(Disturbances& disturbances) {
  static constinit Watch watch;
  const double end = now() + world.options.seconds;
  double next_fork = 0;
  set_alarm_blocked(false);
  for (unsigned i = 0; i < world.options.threads; ++i) start(i);
  set_alarm_blocked(true);
  if (world.options.signals) start_signals();
  for (unsigned running = world.options.threads; running > 0;) {
    watch.look(now());
    const bool over = is_over(end);
    if (over) world.stop.store(true, std::memory_order_relaxed);
    if (const double time = now(); time >= next_fork) {
      world.fork_due.store(true, std::memory_order_relaxed);
      next_fork = time + static_cast<double>(world.options.fork_interval) * 1e-3;
    }
    pollfd wait = {.fd = world.finished_pipe[0], .events = POLLIN, .revents = 0};
    unsigned char lane = 0;
    disturbances.next();
    if (poll(&wait, 1, poll_milliseconds) <= 0 || read(world.finished_pipe[0], &lane, 1) != 1) continue;
    pthread_join(world.lanes[lane].thread, nullptr);
    if (!over) {
      disturbances.calm();  // a thread needs a stack
      set_alarm_blocked(false);
      start(lane);
      set_alarm_blocked(true);
    } else {
      --running;
    }
  }
}

void finish(const Disturbances& disturbances) {
  for (unsigned i = 0; i < world.options.threads; ++i) {
    Lane& lane = world.lanes[i];
    clear(lane);
    for (Block b; lane.mailbox.take(b);) release(b);
  }
  api::malloc_trim(0);
  std::printf(
      "stress: %s: %llu operations, %llu threads, %llu moves, %llu forks, %u signals, %llu disturbances (cpus by "
      "%s): nothing wrong\n",
      api::is_terrace() ? api::rung() : "not Terrace", static_cast<unsigned long long>(operations_done()),
      static_cast<unsigned long long>(world.threads.load()), static_cast<unsigned long long>(world.moves.load()),
      static_cast<unsigned long long>(world.forks.load()), signals_seen.load(),
      static_cast<unsigned long long>(disturbances.count()), disturbances.cpus_by());
}

}  // namespace

int main(int argc, char** argv) {
  world.options = parse(argc, argv);
  if (world.options.threads > 255) usage();
  if (const int status = api::status_unless_as_asked()) return status;
  if (pipe(world.finished_pipe) != 0) fail("pipe: %s", std::strerror(errno));
  world.lanes = mapped<Lane>(world.options.threads);
  for (unsigned i = 0; i < world.options.threads; ++i) new (&world.lanes[i]) Lane;
  if (world.options.disturb.limits) allow_failures();
  Disturbances disturbances(world.options.disturb, world.options.seed);
  run(disturbances);
  disturbances.calm();
  finish(disturbances);
  return 0;
}
