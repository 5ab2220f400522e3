// SPDX-License-Identifier: MIT OR Apache-2.0
// Giving the pages of free spans back. The lock is dropped around the system call.
#include "os/memory.h"
#include "os/threads.h"
#include "os/yield.h"
#include "span/spans.h"

namespace terrace::span {
namespace {

// The kernel holds the process's map of memory, for reading at least, as long as one call takes; a thread that maps memory
// waits for that. About a millisecond.
constexpr std::size_t piece = 32 * mib;

// Granules, so many that a system call less often than for each 4 MiB is made for records: 9 pages.
constexpr std::uint32_t worth_stripping = 64;

bool purge_in_pieces(std::byte* from, std::size_t bytes) noexcept {
  for (std::size_t done = 0; done < bytes; done += piece) {
    if (!os::purge(from + done, min_of(piece, bytes - done))) return false;
  }
  return true;
}

}  // namespace

void Spans::link_purging(GranuleIndex first) noexcept {
  FreePart& f = record(first).free;
  record(first).state = State::purging;
  f.previous = no_granule;
  f.next = purging_;
  f.purger = os::this_thread();
  if (purging_ != no_granule) record(purging_).free.previous = first;
  purging_ = first;
}

void Spans::unlink_purging(GranuleIndex first) noexcept {
  const FreePart& f = record(first).free;
  (f.previous == no_granule ? purging_ : record(f.previous).free.next) = f.next;
  if (f.next != no_granule) record(f.next).free.previous = f.previous;
}

// Bytes purged; 0 when nothing is dirty, or the system does not take it: then it stays dirty, and is the newest, so that the
// others have their turn. The lock is held at the beginning and at the end, not in between.
std::uint64_t Spans::purge_oldest() noexcept {
  const GranuleIndex first = oldest_;
  if (first == no_granule) return 0;
  const std::uint32_t granules = record(first).granules;
  const std::uint64_t when = record(first).free.when;
  unlink(first);
  link_purging(first);
  mutex_.unlock();
  const bool purged = purge_in_pieces(window_.address(first), bytes_of(granules));
  mutex_.lock();
  unlink_purging(first);
  const GranuleIndex merged = insert_free(first, purged ? State::clean : State::dirty, granules, purged ? 0 : when);
  if (!purged) return 0;
  strip(merged);
  counters_.purged_bytes.add(bytes_of(granules));
  return bytes_of(granules);
}

// The records of a clean span say nothing but for the first and the last, and are a hundredth of what was in use when it was
// most. As a purge, without the lock: nobody else knows the span meanwhile.
void Spans::strip(GranuleIndex first) noexcept {
  const std::uint32_t granules = record(first).granules;
  if (granules - min_of(granules, record(first).free.bare) < worth_stripping) return;
  unlink(first);
  link_purging(first);
  mutex_.unlock();
  window_.purge_records(first + 1, granules - 2);
  mutex_.lock();
  unlink_purging(first);
  insert_free(first, State::clean, granules, 0, granules);
}

// The pages go while the span is whole, and its owner's. In a program that shrinks and lengthens a block in turn they stay.
void Spans::shorten(GranuleIndex first, std::uint32_t granules, std::byte* from) noexcept {
  const std::uint32_t rest = record(first).granules - granules;
  const auto bytes = static_cast<std::size_t>(window_.address(first) + bytes_of(granules + rest) - from);
  const bool stays = dirty_bytes_.read() + bytes <= refaults_.allowance();
  const bool purged = !stays && purge_in_pieces(from, bytes);
  if (rest == 0) return;
  if (!purged) return shorten(first, granules);
  const GranuleIndex behind = split(first, granules);
  {
    const os::LockGuard guard(mutex_);
    counters_.purged_bytes.add(bytes);
    refaults_.on_purge(bytes);
  }
  give_fresh(behind);
}

// Until no more than `bytes` are dirty. Several threads may be in here, each with spans of its own.
std::uint64_t Spans::purge_beyond(std::uint64_t bytes) noexcept {
  std::uint64_t sum = 0;
  while (dirty_bytes_.read() > bytes) {
    const std::uint64_t purged = purge_oldest();
    if (purged == 0) break;
    sum += purged;
  }
  return sum;
}

void Spans::purge_beyond_bound() noexcept { refaults_.on_purge(purge_beyond(may_keep(refaults_))); }

void Spans::settle() noexcept {
  if (dirty_bytes_.read() <= may_keep(refaults_)) return;
  const os::LockGuard guard(mutex_);
  purge_beyond_bound();
}

// mlockall (MCL_CURRENT) has put pages into every span. A clean one among them is dirty again.
void Spans::doubt_clean() noexcept {
  for (unsigned bin = clean_.first_from(0); bin != Bins::none; bin = clean_.first_from(bin + 1)) {
    for (GranuleIndex i = clean_.head(bin), next = no_granule; i != no_granule; i = next) {
      next = record(i).free.next;
      if (!os::is_locked(window_.address(i), os::page_size())) continue;
      unlink(i);
      insert_free(i, State::dirty, record(i).granules, 0);
    }
  }
}

void Spans::decay(std::uint64_t now) noexcept {
  const os::LockGuard guard(mutex_);
  if (!doubted_ && os::has_met_locked_pages()) {
    doubted_ = true;
    doubt_clean();
  }
  demand_.fade(in_use_bytes());
  refaults_.fade();
  beyond_.fade();
  while (oldest_ != no_granule && record(oldest_).free.when + decay_ms_ <= now && purge_oldest() != 0) {
  }
}

std::uint64_t Spans::purge_down_to(std::uint64_t bytes) noexcept {
  const os::LockGuard guard(mutex_);
  const std::uint64_t purged = purge_beyond(bytes);
  refaults_.on_purge(purged);
  beyond_.on_purge(purged);
  return purged;
}

std::uint64_t Spans::purge_at_rest(std::uint64_t bytes) noexcept {
  const os::LockGuard guard(mutex_);
  return purge_beyond(bytes);
}

std::size_t Spans::purge_all() noexcept {
  const os::LockGuard guard(mutex_);
  doubt_clean();
  return purge_beyond(0);
}

// Memory is short, and some of it is in other threads' hands on its way to the system. Whether another look makes sense.
bool Spans::wait_for_purges(int& waits) noexcept {
  if (purging_ == no_granule || waits == 0) return false;
  for (; purging_ != no_granule && waits != 0; --waits) {
    mutex_.unlock();
    os::sleep_briefly();
    mutex_.lock();
  }
  return true;
}

// The pages may be there or not: dirty is right for both. If it is this thread that was interrupted by a handler that forks, it
// goes on in the child with giving them back, and inserts the span itself.
void Spans::reset_after_fork() noexcept {
  mutex_.reset_after_fork();
  for (GranuleIndex first = purging_, next = no_granule; first != no_granule; first = next) {
    next = record(first).free.next;
    if (record(first).free.purger == os::this_thread()) continue;
    unlink_purging(first);
    insert_free(first, State::dirty, record(first).granules, record(first).free.when);
  }
}

}  // namespace terrace::span
