// SPDX-License-Identifier: MIT OR Apache-2.0
// replay TRACE [times=1] [latency=1] [settled=1]: makes the calls of a recorded program again, on the allocator that this
// process has, each thread's on a thread of its own; replay TRACE plan=FILE only writes what takes time before the first call
// to a file, which can be given in place of the trace.
//
//   times=N     the whole trace N times; what it leaves is freed in between, which is not measured
//   latency=1   times every call; slower, so `seconds` are not to be compared
//   settled=1   looks at the resident memory a second after everything was freed
//
// Prints one line of JSON: seconds, cpu_seconds, faults, operations (calls of the trace that were made), threads, and if asked
// for settled_rss and malloc_p50, malloc_p99, malloc_p999, free_p50, free_p99, free_p999 in nanoseconds. Status 2 with a line
// on standard error if the trace can not be read, 3 if a block lost its contents.
#include "../common/program.h"
#include "plan_file.h"
#include "player.h"

#include <pthread.h>
#include <unistd.h>

namespace {

using namespace bench;
using namespace bench::replay;

// Enough for what an allocator puts on a stack; ten thousand threads must fit into memory.
constexpr std::size_t stack_bytes = 1 << 18;

template <bool timed>
class Replay {
 public:
  explicit Replay(const Plan& plan)
      : plan_(plan),
        own_places_(plan.header().own_places),
        shared_places_(plan.header().shared_places),
        progress_(plan.header().threads),
        members_(plan.header().threads),
        pace_(progress_.begin(), progress_.size()) {
    stage_ = {{own_places_.begin(), shared_places_.begin(), &pace_, spawn}, this};
    pthread_attr_init(&attributes_);
    pthread_attr_setdetachstate(&attributes_, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attributes_, stack_bytes);
  }

  Spent play() {
    for (std::size_t i = 0; i < members_.size(); ++i) {
      members_[i].replay = this;
      members_[i].player.set(stage_, progress_[i], plan_.steps(i), plan_.thread(i).steps);
      progress_[i].first = plan_.thread(i).first_sequence;
      progress_[i].sequence.store(progress_[i].first, std::memory_order_relaxed);
    }
    for (SharedPlace& place : shared_places_) place.reset();
    pace_.reset();
    running_.store(static_cast<std::uint32_t>(members_.size()), std::memory_order_relaxed);

    const Phase phase;
    if (members_.size() > 0) run(members_[0]);
    for (std::uint32_t n = running_.load(std::memory_order_acquire); n > 0; n = running_.load(std::memory_order_acquire))
      futex_wait(running_, n);
    return phase.spent();
  }

  void free_leftovers() {
    for (std::size_t i = 0; i < plan_.header().leftovers; ++i) {
      const Leftover& left = plan_.leftovers()[i];
      void* const block = left.shared != 0 ? shared_places_[left.place].block : own_places_[left.place];
      verify(block, left.size, mark_of(left.place));
      std::free(block);
    }
  }

  void add_times(Line& line) const {
    Mapped<Times> sum(1);
    for (const Member& member : members_) sum[0].add(member.player.times());
    const Ticks ticks = Ticks::calibrated();
    add_quantiles(line, sum[0].allocations, ticks, {"malloc_p50", "malloc_p99", "malloc_p999"});
    add_quantiles(line, sum[0].releases, ticks, {"free_p50", "free_p99", "free_p999"});
  }

 private:
  struct Member {
    Replay* replay = nullptr;
    Player<timed> player;
  };
  struct MyStage : Stage {
    Replay* replay = nullptr;
  };

  static void run(Member& member) {
    member.player.play();
    Replay& replay = *member.replay;
    if (replay.running_.fetch_sub(1, std::memory_order_acq_rel) == 1) futex_wake_all(replay.running_);
  }

  static void spawn(Stage& stage, std::uint32_t thread) {
    Replay& replay = *static_cast<MyStage&>(stage).replay;
    pthread_t started;
    const auto begin = [](void* member) -> void* {
      run(*static_cast<Member*>(member));
      return nullptr;
    };
    if (pthread_create(&started, &replay.attributes_, begin, &replay.members_[thread]) != 0) {
      std::fprintf(stderr, "a thread could not be started\n");
      std::_Exit(1);
    }
  }

  const Plan& plan_;
  Mapped<void*> own_places_;
  Mapped<SharedPlace> shared_places_;
  Mapped<Progress> progress_;
  Mapped<Member> members_;
  Pace pace_;
  MyStage stage_;
  pthread_attr_t attributes_;
  std::atomic<std::uint32_t> running_{0};
};

struct Wanted {
  std::size_t times;
  bool settled;
};

template <bool timed>
void measure(const Plan& plan, const Wanted& wanted) {
  Line line;
  {
    Replay<timed> replay(plan);
    Spent sum;
    for (std::size_t i = 0; i < wanted.times; ++i) {
      const Spent spent = replay.play();
      sum.seconds += spent.seconds;
      sum.cpu_seconds += spent.cpu_seconds;
      sum.faults += spent.faults;
      replay.free_leftovers();
    }
    line.add("seconds", sum.seconds).add("cpu_seconds", sum.cpu_seconds).add("faults", sum.faults);
    line.add("operations", static_cast<double>(plan.header().operations * wanted.times));
    line.add("threads", static_cast<double>(plan.header().threads));
    if constexpr (timed) replay.add_times(line);
  }
  if (wanted.settled) {
    sleep(1);
    line.add("settled_rss", resident_bytes());
  }
  line.end();
}

}  // namespace

int main(int argc, char** argv) {
  static char buffer[1 << 16];
  std::setvbuf(stdout, buffer, _IOFBF, sizeof buffer);  // stdio would allocate one
  if (argc < 2) Options::fail("the trace");
  const Options options(argc - 1, argv + 1);
  const char* const plan_path = options.text("plan", nullptr);
  const Wanted wanted{options.number("times", 1), options.flag("settled")};
  const bool timed = options.flag("latency");
  options.done();
  if (plan_path != nullptr) return write_plan(argv[1], plan_path);
  const Plan plan(argv[1]);
  timed ? measure<true>(plan, wanted) : measure<false>(plan, wanted);
  return 0;
}
