// SPDX-License-Identifier: MIT OR Apache-2.0
#include "os/lock_order.h"

#include "base/format.h"
#include "os/mutex.h"
#include "os/thread_state.h"

#include <bit>
#include <string_view>

namespace terrace::os {

#if defined(TERRACE_ASSERTIONS)
namespace {

constexpr std::size_t ranks = static_cast<std::size_t>(Rank::count_);
constexpr const char* rank_names[] = {"the list of LAB threads",
                                      "the draining of LABs",
                                      "the sidelined buffers",
                                      "the list of arenas",
                                      "an arena",
                                      "the pool of segments",
                                      "the list of object caches",
                                      "the opening of the heap",
                                      "the ladder",
                                      "the environment",
                                      "the registry",
                                      "the quarantine",
                                      "the pool",
                                      "the classes of objects",
                                      "maintenance",
                                      "the switch of the fast path",
                                      "the thread slots",
                                      "a slot",
                                      "a depot",
                                      "a class of slabs",
                                      "the spans",
                                      "the messages"};
static_assert(sizeof rank_names / sizeof rank_names[0] == ranks);

LockOrder::Held& held() noexcept { return thread_state().locks; }

std::size_t at(Rank rank) noexcept { return static_cast<std::size_t>(rank); }

// The innermost rank held from `rank` on; `ranks` when there is none.
std::size_t innermost_from(std::size_t rank) noexcept {
  for (std::size_t r = ranks; r > rank; --r) {
    if (held().locks[r - 1] != 0) return r - 1;
  }
  return ranks;
}

[[noreturn]] void report(std::size_t waited_for, std::size_t held_rank) noexcept {
  char buf[160];
  Writer line(buf, sizeof buf);
  line.text("lock order: waits for ").text(rank_names[waited_for]).text(" and holds ").text(rank_names[held_rank]);
  line.terminate();
  report_internal(buf);
}

}  // namespace

void LockOrder::look(Rank rank) noexcept {
  const std::size_t inner = innermost_from(at(rank));
  if (inner != ranks && (inner != at(rank) || !held().takes_all)) report(at(rank), inner);
}

void LockOrder::remember(Rank rank) noexcept { held().locks[at(rank)] = held().locks[at(rank)] + 1; }
void LockOrder::set_takes_all(bool value) noexcept { held().takes_all = value; }

void LockOrder::forget(Rank rank) noexcept {
  TERRACE_ASSERT(held().locks[at(rank)] != 0, "lock order: unlocks what it does not hold");
  held().locks[at(rank)] = held().locks[at(rank)] - 1;
}

bool LockOrder::knows(Rank rank) noexcept { return Mutex::holds_all() || held().locks[at(rank)] != 0; }
bool LockOrder::knows_within(Rank rank) noexcept { return !Mutex::holds_all() && innermost_from(at(rank) + 1) != ranks; }
#endif

}  // namespace terrace::os
