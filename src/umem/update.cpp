// SPDX-License-Identifier: MIT OR Apache-2.0
#include "umem/update.h"

#include "heap/heap.h"
#include "os/clock.h"
#include "os/threads.h"
#include "os/yield.h"
#include "umem/cache.h"
#include "umem/messages.h"
#include "umem/options.h"

#include <atomic>
#include <cerrno>
#include <csignal>
#include <pthread.h>

namespace terrace::umem {
namespace {

constexpr std::size_t stack_bytes = 256 * kib;  // a program's functions run on it
constexpr std::uint64_t longest_wait_ns = 10'000'000'000;

std::atomic<std::uint64_t> interval_ms{usual_reap_interval_ms};
// relaxed: only the clock is compared; the first call of either may always do it.
std::atomic<std::uint64_t> last_reap{0}, last_update{0};
std::atomic<bool> under_way{false};
std::atomic<std::uint64_t> reclaims{0};     // that have ended
constinit thread_local bool at_it = false;  // this thread is the one

bool is_due(std::atomic<std::uint64_t>& last) noexcept {
  const std::uint64_t now = os::coarse_milliseconds();
  std::uint64_t before = last.load(std::memory_order_relaxed);
  if (before != 0 && now - before < interval_ms.load(std::memory_order_relaxed)) return false;
  return last.compare_exchange_strong(before, now, std::memory_order_relaxed);
}

void age() noexcept { heap::heap.age_prepared_objects(); }

__attribute__((noinline)) void tell_of_reap() noexcept { Message().text("umem allocator: caches are reaped\n"); }

void reclaim_and_age() noexcept {
  if (options.tells_all) tell_of_reap();  // not inline: half a KiB of stack
  caches.for_each([](Cache& c) {
    if (c.reclaim != nullptr) c.reclaim(c.private_data);
  });
  age();
  age();                                             // what nobody has touched since the first look
  reclaims.fetch_add(1, std::memory_order_release);  // pairs with reclaim_now(): what was given back is seen
}

void run(void (*work)() noexcept) noexcept {
  at_it = true;
  work();
  at_it = false;
  under_way.store(false, std::memory_order_release);  // pairs with begin(): one at a time
}

// Its thread is not the program's: no handler of the program's runs there. One thread at a time is here, as under_way is its
// own, so what pthread_create needs is static: it takes 700 bytes of stack itself.
bool start(void (*work)() noexcept) noexcept {
  static pthread_attr_t attributes;
  static sigset_t all, before;
  if (pthread_attr_init(&attributes) != 0) return false;
  sigfillset(&all);
  const auto body = [](void* work_of_thread) -> void* {
    run(reinterpret_cast<void (*)() noexcept>(work_of_thread));
    return nullptr;
  };
  pthread_t thread;
  bool started = pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED) == 0 &&
                 pthread_attr_setstacksize(&attributes, stack_bytes) == 0 && pthread_sigmask(SIG_SETMASK, &all, &before) == 0;
  if (started) {
    started = pthread_create(&thread, &attributes, body, reinterpret_cast<void*>(work)) == 0;
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }
  pthread_attr_destroy(&attributes);
  return started;
}

void begin(void (*work)() noexcept) noexcept {
  if (under_way.exchange(true, std::memory_order_acquire)) return;
  const int saved = errno;
  if (os::single_threaded()) {
    run(work);
  } else if (!start(work)) {
    under_way.store(false, std::memory_order_release);
  }
  errno = saved;
}

}  // namespace

void reap() noexcept {
  if (is_due(last_reap)) begin(reclaim_and_age);
}

bool reclaim_now() noexcept {
  if (at_it || !caches.has_reclaim()) return false;
  const std::uint64_t before = reclaims.load(std::memory_order_relaxed);
  const std::uint64_t started = os::monotonic_nanoseconds();
  while (under_way.exchange(true, std::memory_order_acquire)) {
    if (os::monotonic_nanoseconds() - started > longest_wait_ns) return false;
    os::sleep_briefly();
  }
  if (reclaims.load(std::memory_order_acquire) != before) {  // by another thread
    under_way.store(false, std::memory_order_release);
    return true;
  }
  const int saved = errno;
  run(reclaim_and_age);
  errno = saved;
  return true;
}

void update_if_due() noexcept {
  if (last_update.load(std::memory_order_relaxed) == 0) {  // a process that has just begun has nothing that waits
    is_due(last_update);
  } else if (is_due(last_update)) {
    begin(age);
  }
}

void set_reap_interval(std::uint64_t milliseconds) noexcept { interval_ms.store(milliseconds, std::memory_order_relaxed); }

// The thread that was at it does not exist in the child.
void update_after_fork_in_child() noexcept { under_way.store(false, std::memory_order_relaxed); }

}  // namespace terrace::umem
