// SPDX-License-Identifier: MIT OR Apache-2.0
// Shared by the programs: each ends with 0 and "ok" on standard output, or with 1 and a line on standard error. What they need
// themselves is on the stack or static, so that the only blocks are those that are tested.
#pragma once

#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

namespace env_test {

template <class T>
inline T opaque(T value) {
  asm volatile("" : "+r"(value) : : "memory");
  return value;
}

inline void say(int fd, const char* text) {
  if (write(fd, text, std::strlen(text)) < 0) _exit(9);
}

[[noreturn]] inline void fail(const char* what) {
  say(STDERR_FILENO, "failed: ");
  say(STDERR_FILENO, what);
  say(STDERR_FILENO, "\n");
  _exit(1);
}

inline void check(bool holds, const char* what) {
  if (!holds) fail(what);
}

inline void ok() { say(STDOUT_FILENO, "ok\n"); }

/// Bytes of this process that are in memory. No library is asked, which might allocate.
inline std::size_t resident() {
  char text[128] = {};
  const int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
  check(fd >= 0 && read(fd, text, sizeof text - 1) > 0, "/proc/self/statm");
  close(fd);
  return std::strtoull(std::strchr(text, ' '), nullptr, 10) * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

inline double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

// A block filled with a byte that depends on its size; check_and_free() finds what somebody else wrote.
inline unsigned char mark_of(std::size_t size) { return static_cast<unsigned char>(size * 37 % 255 + 1); }

inline void* filled(std::size_t size) {
  void* const p = opaque(std::malloc(size));
  check(p != nullptr, "malloc gave nothing");
  check(reinterpret_cast<std::uintptr_t>(p) % 16 == 0, "malloc gave a misaligned block");
  std::memset(p, mark_of(size), size);
  return p;
}

inline bool intact(const void* p, std::size_t size) {
  const auto* const bytes = static_cast<const unsigned char*>(p);
  return size == 0 || (bytes[0] == mark_of(size) && std::memcmp(bytes, bytes + 1, size - 1) == 0);
}

inline void check_and_free(void* p, std::size_t size) {
  check(intact(p, size), "a block was damaged");
  std::free(p);
}

inline void check_zeroed(std::size_t size) {
  auto* const p = static_cast<unsigned char*>(opaque(std::calloc(1, size)));
  check(p != nullptr, "calloc gave nothing");
  for (std::size_t i = 0; i < size; ++i) check(p[i] == 0, "calloc gave a block that is not zero");
  std::memset(p, 0x77, size);
  std::free(p);
}

struct Random {
  std::uint64_t state;
  std::uint64_t below(std::uint64_t n) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    return (state >> 33) % n;
  }
  std::size_t size() {
    const std::uint64_t kind = below(64);
    return 1 + (kind < 50 ? below(600) : kind < 62 ? below(30000) : below(400000));
  }
};

// A set of blocks, a tenth of which changes with every step.
class WorkingSet {
 public:
  explicit WorkingSet(std::uint64_t seed) : random_{seed} {}
  ~WorkingSet() { clear(); }
  WorkingSet(const WorkingSet&) = delete;
  WorkingSet& operator=(const WorkingSet&) = delete;

  void step() {
    for (int i = 0; i < count / 10; ++i) {
      Entry& e = entries_[random_.below(count)];
      if (e.p != nullptr && random_.below(4) == 0) {
        check(intact(e.p, e.size), "a block was damaged");
        const std::size_t size = random_.size();
        auto* const p = static_cast<unsigned char*>(opaque(std::realloc(e.p, size)));
        check(p != nullptr, "realloc gave nothing");
        const std::size_t kept = size < e.size ? size : e.size;
        for (std::size_t at = 0; at < kept; at += kept / 16 + 1) check(p[at] == mark_of(e.size), "realloc lost the content");
        std::memset(p, mark_of(size), size);
        e = {p, size};
      } else {
        if (e.p != nullptr) check_and_free(e.p, e.size);
        const std::size_t size = random_.size();
        e = {filled(size), size};
      }
    }
    check_zeroed(random_.size());
    if (random_.below(500) == 0) malloc_trim(0);
  }

  void clear() {
    for (Entry& e : entries_) {
      if (e.p != nullptr) check_and_free(e.p, e.size);
      e = {};
    }
  }

 private:
  static constexpr int count = 100;
  struct Entry {
    void* p = nullptr;
    std::size_t size = 0;
  };
  Entry entries_[count];
  Random random_;
};

// Threads that allocate and free all the time.
class Allocating {
 public:
  explicit Allocating(int threads) : count_(threads) {
    for (int i = 0; i < count_; ++i) check(pthread_create(&threads_[i], nullptr, run, this) == 0, "pthread_create");
  }
  ~Allocating() {
    stop_.store(true);
    for (int i = 0; i < count_; ++i) pthread_join(threads_[i], nullptr);
  }
  Allocating(const Allocating&) = delete;
  Allocating& operator=(const Allocating&) = delete;
  pthread_t thread(int i) const { return threads_[i]; }

 private:
  static void* run(void* self) {
    auto& me = *static_cast<Allocating*>(self);
    WorkingSet set(me.seeds_.fetch_add(1));
    while (!me.stop_.load(std::memory_order_relaxed)) set.step();
    return nullptr;
  }

  std::atomic<bool> stop_{false};
  std::atomic<std::uint64_t> seeds_{1};
  int count_;
  pthread_t threads_[16];
};

// A quarter of what the whole test may take: emulated machines need longer. Read before main(): a test may empty the
// environment.
inline const unsigned child_seconds = [] {
  const char* const given = std::getenv("TERRACE_TEST_TIMEOUT");
  return given != nullptr ? static_cast<unsigned>(std::atoi(given)) / 4 : 30U;
}();

// For children: to hang is to die of SIGALRM.
inline void no_longer_than_a_child_needs() {
  std::signal(SIGALRM, SIG_DFL);
  alarm(child_seconds);
}

inline void expect_exit(pid_t child, int wanted) {
  int status = 0;
  while (waitpid(child, &status, 0) < 0) check(errno == EINTR, "waitpid");
  check(!WIFSIGNALED(status) || WTERMSIG(status) != SIGALRM, "a child hung");
  check(WIFEXITED(status) && WEXITSTATUS(status) == wanted, "a child did not end as it should");
}

// Null: not Terrace.
inline const char* rung() {
  auto* const f = reinterpret_cast<const char* (*)()>(dlsym(RTLD_DEFAULT, "terrace_rung"));
  return f != nullptr ? f() : nullptr;
}

}  // namespace env_test
