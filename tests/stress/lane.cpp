// SPDX-License-Identifier: MIT OR Apache-2.0
#include "lane.h"

#include "allocator.h"
#include "random.h"
#include "report.h"

#include <csignal>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

namespace stress {

bool Mailbox::put(const Block& b) {
  for (Entry& e : entries_) {
    unsigned expected = empty;
    // acquire, pairs with the release in take(): the entry has been read.
    if (!e.state.compare_exchange_strong(expected, busy, std::memory_order_acquire, std::memory_order_relaxed)) continue;
    e.block = b;
    e.state.store(full, std::memory_order_release);
    return true;
  }
  return false;
}

bool Mailbox::take(Block& b) {
  for (Entry& e : entries_) {
    unsigned expected = full;
    // acquire, pairs with the release in put(): the block and its stamp are seen.
    if (!e.state.compare_exchange_strong(expected, busy, std::memory_order_acquire, std::memory_order_relaxed)) continue;
    b = e.block;
    e.state.store(empty, std::memory_order_release);
    return true;
  }
  return false;
}

namespace {

constexpr unsigned child_seconds = 30;  // more than any step of a child needs: it hangs

// In a child. Relaxed: of one thread and its own handler.
std::atomic<unsigned> steps{0};

// On a machine with other work a child may take any time; one that hangs makes no step between two alarms, and dies of the
// second.
void look_for_progress(int) {
  static unsigned seen = ~0U;
  const unsigned now = steps.load(std::memory_order_relaxed);
  if (now == seen) {
    std::signal(SIGALRM, SIG_DFL);
    raise(SIGALRM);  // when this handler returns
  }
  seen = now;
  alarm(child_seconds);
}

void stepped() { steps.store(steps.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed); }

// Holds a block until the thread has ended, when C++ destroys its thread-local objects.
struct LastWord {
  Block block;
  ~LastWord() {
    if (block.start != nullptr) release(block);
  }
};
thread_local LastWord last_word;

class Life {
 public:
  Life(World& world, unsigned lane)
      : world_(world),
        lane_(world.lanes[lane]),
        number_(lane),
        random_(world.options.seed * 1000003 + lane * 7919 + lane_.generation * 104729),
        owner_((std::uint64_t{lane} + 1) << 32 | lane_.generation) {}

  void run() {
    last_word.block = allocate(How::malloc, random_.size(2000), 16, owner_);
    const std::uint64_t length = 50 + random_.below(std::uint64_t{1} << (4 + random_.below(10)));
    for (std::uint64_t i = 0; i < length && !world_.stop.load(std::memory_order_relaxed); ++i) {
      step();
      lane_.operations.fetch_add(1, std::memory_order_relaxed);
      if (world_.options.forks && world_.fork_due.load(std::memory_order_relaxed) &&
          world_.fork_due.exchange(false, std::memory_order_relaxed)) {
        fork_a_child();
      }
    }
    leave();
  }

 private:
  void step() {
    switch (random_.below(20)) {
      case 0 ... 5: add(); break;
      case 6 ... 9: remove(); break;
      case 10 ... 11: change(); break;
      case 12 ... 13: send(); break;
      case 14: receive(); break;
      case 15 ... 16: burst(); break;
      case 17: pairs(); break;
      case 18:
        if (lane_.count > 0) verify(any(), "while it lives");
        break;
      default: rare(); break;
    }
  }

  Block& any() { return lane_.blocks[random_.below(lane_.count)]; }

  Block make() {
    const std::size_t size = random_.usual_size(world_.options.size_limit);
    switch (random_.below(8)) {
      case 0 ... 1: return allocate(How::calloc, size, 16, owner_);
      case 2:
        return allocate(How::aligned_alloc, size, std::size_t{1} << (random_.one_in(8) ? random_.below(21) : random_.below(13)),
                        owner_);
      case 3: return allocate(How::posix_memalign, size, std::size_t{8} << random_.below(10), owner_);
      default: return allocate(How::malloc, random_.one_in(200) ? 0 : size, 16, owner_);
    }
  }

  void keep(const Block& b) {
    if (b.start == nullptr) return;
    lane_.blocks[lane_.count++] = b;
    lane_.live_bytes += b.usable;
  }
  Block drop(std::size_t i) {
    const Block b = lane_.blocks[i];
    lane_.blocks[i] = lane_.blocks[--lane_.count];
    lane_.live_bytes -= b.usable;
    return b;
  }

  void add() {
    while (lane_.count == Lane::capacity || lane_.live_bytes > Lane::live_limit) remove();
    keep(make());
  }

  void remove() {
    if (lane_.count == 0) return;
    Block b = drop(random_.below(lane_.count));
    release(b);
  }

  void change() {
    if (lane_.count == 0) return;
    Block& b = any();
    lane_.live_bytes -= b.usable;
    std::size_t size =
        random_.one_in(4) ? random_.usual_size(world_.options.size_limit) : b.size + b.size / 2 + random_.below(64);
    if (random_.one_in(3)) size = b.size / 2 + 1;
    if (size == 0 || size > world_.options.size_limit) size = 1;
    resize(b, size, owner_);
    lane_.live_bytes += b.usable;
  }

  void send() {
    if (lane_.count == 0) return;
    Block b = drop(random_.below(lane_.count));
    Lane& to = world_.lanes[random_.below(world_.options.threads)];
    if (!to.mailbox.put(b)) release(b);
  }

  void receive() {
    Block b;
    for (int i = 0; i < 64 && lane_.mailbox.take(b); ++i) {
      if (random_.one_in(4) && lane_.count < Lane::capacity) {
        keep(b);
      } else {
        release(b);
      }
    }
  }

  // Many blocks of one size at once, freed in an order of its own: refills and spills.
  void burst() {
    constexpr std::size_t longest = 400;
    Block blocks[longest];
    const std::size_t size = random_.size(random_.one_in(10) ? 40000 : 1500);
    const std::size_t n = 1 + random_.below(size > 4096 ? 40 : longest);
    for (std::size_t i = 0; i < n; ++i) blocks[i] = allocate(How::malloc, size, 16, owner_);
    switch (random_.below(3)) {
      case 0:
        for (std::size_t i = 0; i < n; ++i) release(blocks[i]);
        break;
      case 1:
        for (std::size_t i = n; i > 0; --i) release(blocks[i - 1]);
        break;
      default: {
        Lane& to = world_.lanes[random_.below(world_.options.threads)];
        for (std::size_t i = 0; i < n; ++i) {
          if (i % 4 != 0 || blocks[i].start == nullptr || !to.mailbox.put(blocks[i])) release(blocks[i]);
        }
      }
    }
  }

  void pairs() {
    const std::size_t size = random_.usual_size(world_.options.size_limit);
    const std::uint64_t n = size > 32768 ? 4 : 60;
    for (std::uint64_t i = 0; i < n; ++i) {
      Block b = allocate(How::malloc, size, 16, owner_);
      release(b);
    }
  }

  void rare() {
    if (random_.one_in(16)) move_to_other_cpus();
    if (random_.one_in(400)) api::malloc_trim(0);
    if (random_.one_in(16)) sched_yield();
  }

  void move_to_other_cpus() {
    static const cpu_set_t allowed = [] {
      cpu_set_t all;
      CPU_ZERO(&all);
      sched_getaffinity(getpid(), sizeof all, &all);
      return all;
    }();
    cpu_set_t chosen;
    CPU_ZERO(&chosen);
    const std::uint64_t density = 1 + random_.below(4);
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
      if (CPU_ISSET(cpu, &allowed) && random_.one_in(density)) CPU_SET(cpu, &chosen);
    }
    sched_setaffinity(0, sizeof chosen, CPU_COUNT(&chosen) > 0 ? &chosen : &allowed);
    world_.moves.fetch_add(1, std::memory_order_relaxed);
  }

  // The child has a copy of everything and only this thread: its blocks must be as they were, and allocation must go on.
  void fork_a_child() {
    const pid_t pid = fork();
    if (pid < 0) return;
    if (pid == 0) {
      std::signal(SIGALRM, look_for_progress);
      alarm(child_seconds);
      if (random_.one_in(2)) lift_limits();
      for (int i = 0; i < 300; ++i, stepped()) add();
      for (int i = 0; i < 20; ++i, stepped()) burst();
      clear(lane_);
      stepped();
      api::malloc_trim(0);
      for (int i = 0; i < 300; ++i, stepped()) add();
      release(last_word.block);
#if !defined(TERRACE_TESTS_PREFIXED)
      if (random_.one_in(2)) std::exit(0);
#endif
      _exit(0);
    }
    int status = 0;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM) fail("a child hung after fork");
    if (status != 0) fail("a child of fork ended with status %#x", static_cast<unsigned>(status));
    world_.forks.fetch_add(1, std::memory_order_relaxed);
  }

  // What happens to a thread's blocks when it ends.
  void leave() {
    switch (random_.below(3)) {
      case 0: break;  // the successor has them
      case 1:
        while (lane_.count > 0) send();
        break;
      default: clear(lane_); break;
    }
  }

  World& world_;
  Lane& lane_;
  unsigned number_;
  Random random_;
  std::uint64_t owner_;
};

}  // namespace

void live(World& world, unsigned lane) { Life(world, lane).run(); }

void clear(Lane& lane) {
  while (lane.count > 0) release(lane.blocks[--lane.count]);
  lane.live_bytes = 0;
}

}  // namespace stress
