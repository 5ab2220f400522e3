// SPDX-License-Identifier: MIT OR Apache-2.0
#include "profile/table.h"

#include "base/bits.h"
#include "os/memory.h"
#include "os/metadata.h"

#include <cstring>

namespace terrace::profile {
namespace {

constexpr std::uint64_t low = 0xffffffff, one_change = std::uint64_t{1} << 32;
constexpr std::uint64_t peak_step = 32;  // a mark for each 32nd that the heap grows

// The first that maps it wins. False: memory is short.
template <class T>
bool map_once(std::atomic<T*>& into) noexcept {
  // [P1] acquire, pairs with the release below: whoever finds the address finds the mapping's zeroes.
  if (into.load(std::memory_order_acquire) != nullptr) return true;
  constexpr std::size_t bytes = sizeof(T) * records_per_chunk;
  auto* const fresh = static_cast<T*>(os::map(bytes));
  if (fresh == nullptr) return false;
  T* before = nullptr;
  if (into.compare_exchange_strong(before, fresh, std::memory_order_release, std::memory_order_relaxed)) {  // [P1]
    os::count_metadata(os::Metadata::profile, bytes);
  } else {
    os::release(fresh, bytes);
  }
  return true;
}

// About what a sample stands for: enough to see whether the heap is larger than ever.
std::uint64_t bytes_of(const Sample& s) noexcept { return max_of(s.weighed, s.period); }

// What the list of free records links, and readers from outside look at.
std::uint32_t load_next(const Sample& s) noexcept { return __atomic_load_n(&s.next, __ATOMIC_RELAXED); }

}  // namespace

bool Table::has_chunk(std::uint32_t chunk) noexcept { return map_once(chunks_[chunk]); }

os::StackCopy* Table::copy_of(std::uint32_t n) noexcept {
  std::atomic<os::StackCopy*>& chunk = copies_[n / records_per_chunk];
  return map_once(chunk) ? &chunk.load(std::memory_order_relaxed)[n % records_per_chunk] : nullptr;
}

template <class T>
bool Table::read_whole(std::uint32_t n, const T& from, T& out, std::uint32_t& version) noexcept {
  constexpr int attempts = 16;  // the writer may be the one that is interrupted
  std::uint32_t& now = at(n).version;
  for (int i = 0; i < attempts; ++i) {
    version = __atomic_load_n(&now, __ATOMIC_ACQUIRE);
    if (version % 2 != 0) continue;
    std::memcpy(&out, &from, sizeof out);
    // An exchange for nothing: no plain load keeps earlier ones before it.
    if (__atomic_fetch_add(&now, 0, __ATOMIC_ACQ_REL) == version) return true;
  }
  return false;
}

bool Table::read(std::uint32_t n, Sample& out) noexcept {
  std::uint32_t version = 0;
  return read_whole(n, at(n), out, version);
}

bool Table::read_copy(std::uint32_t n, os::StackCopy& out, std::uint32_t& version) noexcept {
  const os::StackCopy* const chunk = copies(n / records_per_chunk);
  return chunk != nullptr && read_whole(n, chunk[n % records_per_chunk], out, version);
}

std::uint32_t Table::take() noexcept {
  // [P2] acquire, pairs with the release in push(): what the last owner wrote to the record is seen.
  std::uint64_t head = free_.load(std::memory_order_acquire);
  while ((head & low) != 0) {
    const auto n = static_cast<std::uint32_t>(head & low);
    const std::uint64_t rest = (head & ~low) + one_change + load_next(at(n));          // of a record that has gone: not used
    if (free_.compare_exchange_weak(head, rest, std::memory_order_acquire)) return n;  // [P2]
  }
  std::uint32_t n = used_.load(std::memory_order_relaxed);  // relaxed: only the number counts; chunks are [P1]
  do {
    if (n >= records_per_chunk * most_chunks || !has_chunk(n / records_per_chunk)) return 0;
  } while (!used_.compare_exchange_weak(n, n + 1, std::memory_order_relaxed));
  return n;
}

void Table::push(std::atomic<std::uint64_t>& list, std::uint32_t n) noexcept {
  std::uint64_t head = list.load(std::memory_order_relaxed);
  do {
    __atomic_store_n(&at(n).next, static_cast<std::uint32_t>(head & low), __ATOMIC_RELAXED);
  } while (!list.compare_exchange_weak(head, (head & ~low) + one_change + n, std::memory_order_release,  // [P2], [P3]
                                       std::memory_order_relaxed));
}

void Table::give(std::uint32_t n) noexcept { push(free_, n); }

Sample& Table::begin_writing(std::uint32_t n) noexcept {
  Sample& s = at(n);
  // For readers from outside: odd before anything else. An exchange, since no plain store keeps later ones behind it.
  __atomic_exchange_n(&s.version, s.version + 1, __ATOMIC_ACQ_REL);
  return s;
}

void Table::end_writing(std::uint32_t n) noexcept {
  Sample& s = at(n);
  __atomic_store_n(&s.version, s.version + 1, __ATOMIC_RELEASE);  // for readers from outside
}

void Table::publish(std::uint32_t n) noexcept {
  Sample& s = at(n);
  const std::uint64_t bytes = bytes_of(s), period = s.period;
  s.born = mark();
  s.state = State::live;
  end_writing(n);
  const std::uint64_t live = live_bytes_.fetch_add(bytes, std::memory_order_relaxed) + bytes;  // relaxed: a number
  note_peak(live, period);
}

// Whoever raises the peak sets the mark, and frees the ghosts of the last one.
void Table::note_peak(std::uint64_t live, std::uint64_t step) noexcept {
  std::uint64_t peak = peak_bytes_.load(std::memory_order_relaxed);  // relaxed: one of those who see the same wins
  if (live < peak + max_of(peak / peak_step, step)) return;
  if (!peak_bytes_.compare_exchange_strong(peak, live, std::memory_order_relaxed)) return;
  mark_.fetch_add(1, std::memory_order_relaxed);
  // [P3] acquire, pairs with the release in push().
  std::uint64_t head = ghosts_.load(std::memory_order_relaxed);
  while (
      !ghosts_.compare_exchange_weak(head, (head & ~low) + one_change, std::memory_order_acquire, std::memory_order_relaxed)) {
  }
  for (auto n = static_cast<std::uint32_t>(head & low); n != 0;) {
    const std::uint32_t next = load_next(at(n));
    Sample& s = begin_writing(n);
    s.state = State::free;
    s.address = 0;
    end_writing(n);
    give(n);
    n = next;
  }
}

void Table::drop(std::uint32_t n) noexcept {
  Sample& s = begin_writing(n);
  live_bytes_.fetch_sub(bytes_of(s), std::memory_order_relaxed);  // relaxed: a number
  const std::uint32_t now = mark();
  const bool was_at_peak = s.born < now;
  s.state = was_at_peak ? State::ghost : State::free;
  s.died = now;
  if (!was_at_peak) s.address = 0;
  end_writing(n);
  push(was_at_peak ? ghosts_ : free_, n);
}

}  // namespace terrace::profile
