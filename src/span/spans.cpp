// SPDX-License-Identifier: MIT OR Apache-2.0
#include "span/spans.h"

#include "os/memory.h"

#include <bit>

namespace terrace::span {
namespace {

bool is_free(State s) noexcept { return s == State::clean || s == State::dirty; }
std::uint64_t bytes_of(std::uint32_t granules) noexcept { return std::uint64_t{granules} << granule_shift; }

}  // namespace

// Lengths up to exact_bins have a bin each; beyond, one bin per power of two.
unsigned Spans::bin_of(std::uint32_t granules) noexcept {
  if (granules <= exact_bins) return granules - 1;
  return exact_bins - 1 + static_cast<unsigned>(std::bit_width(granules - 1)) - 5;
}

Spans::List& Spans::list_of(const Record& r) noexcept {
  return free_[r.state == State::dirty ? kind_dirty : kind_clean][bin_of(r.granules)];
}

void Spans::link(GranuleIndex first, State state, std::uint32_t granules, std::uint64_t when) noexcept {
  Record& r = record(first);
  r.state = state;
  r.granules = granules;
  r.first = first;
  r.when = when;
  Record& last = record(first + granules - 1);
  if (granules > 1) last.state = State::interior;
  last.first = first;
  List& list = list_of(r);
  r.next = no_granule;
  r.previous = list.tail;
  if (list.tail == no_granule) {
    list.head = first;
  } else {
    record(list.tail).next = first;
  }
  list.tail = first;
  bitmap_[state == State::dirty ? kind_dirty : kind_clean] |= std::uint64_t{1} << bin_of(granules);
  if (state == State::dirty) dirty_bytes_.add(bytes_of(granules));
}

void Spans::unlink(GranuleIndex first) noexcept {
  Record& r = record(first);
  List& list = list_of(r);
  (r.previous == no_granule ? list.head : record(r.previous).next) = r.next;
  (r.next == no_granule ? list.tail : record(r.next).previous) = r.previous;
  const Kind kind = r.state == State::dirty ? kind_dirty : kind_clean;
  if (list.head == no_granule) bitmap_[kind] &= ~(std::uint64_t{1} << bin_of(r.granules));
  if (kind == kind_dirty) dirty_bytes_.add(std::uint64_t{0} - bytes_of(r.granules));
}

// The neighbours' records tell whether they are free: the first granule of the one behind, the last of the one before.
void Spans::insert_free(GranuleIndex first, State state, std::uint32_t granules, std::uint64_t when) noexcept {
  const auto frontier = static_cast<GranuleIndex>(window_.extent() >> granule_shift);
  if (first + granules < frontier && record(first + granules).state == state) {
    const Record& behind = record(first + granules);
    const std::uint32_t more = behind.granules;
    when = max_of(when, behind.when);
    unlink(first + granules);
    record(first + granules).state = State::interior;
    granules += more;
  }
  if (first > 0) {
    const Record& last = record(first - 1);
    const GranuleIndex before = is_free(last.state) ? first - 1 : last.first;
    if ((last.state == State::interior || is_free(last.state)) && record(before).state == state &&
        before + record(before).granules == first) {
      unlink(before);
      when = max_of(when, record(before).when);
      granules += record(before).granules;
      record(first).state = State::interior;
      first = before;
    }
  }
  link(first, state, granules, when);
}

GranuleIndex Spans::find(Kind kind, std::uint32_t granules) noexcept {
  for (unsigned bin = bin_of(granules); bin < bins; ++bin) {
    const std::uint64_t rest = bitmap_[kind] >> bin;
    if (rest == 0) return no_granule;
    bin += static_cast<unsigned>(std::countr_zero(rest));
    // In the bins that hold several lengths not every span is long enough.
    for (GranuleIndex i = free_[kind][bin].tail; i != no_granule; i = record(i).previous) {
      if (record(i).granules >= granules) return i;
    }
  }
  return no_granule;
}

Spans::Span Spans::carve(GranuleIndex first, std::uint32_t granules, State state) noexcept {
  const State was = record(first).state;
  const std::uint32_t length = record(first).granules;
  const std::uint64_t when = record(first).when;
  unlink(first);
  record(first + length - 1).state = State::interior;
  if (length > granules) link(first + granules, was, length - granules, when);
  Record& r = record(first);
  r.state = state;
  r.granules = granules;
  r.first = first;
  if (granules > 1) record(first + granules - 1).state = State::interior;
  record(first + granules - 1).first = first;
  if (state == State::slab) {
    for (std::uint32_t g = 1; g < granules; ++g) record(first + g).first = first;
  }
  taken_bytes_.add(bytes_of(granules));
  return {.first = first, .zero = was == State::clean};
}

Spans::Span Spans::take(std::uint32_t granules, State state, bool worth_keeping) noexcept {
  const os::LockGuard guard(mutex_);
  GranuleIndex found = find(kind_dirty, granules);
  if (found == no_granule) {
    if (worth_keeping) retention_.needed(bytes_of(granules));
    found = find(kind_clean, granules);
  }
  if (found == no_granule) {
    std::uint32_t mapped = 0;
    const GranuleIndex first = window_.grow(granules, mapped);
    if (first != no_granule) {
      counters_.grown.add();
      insert_free(first, State::clean, mapped, 0);
    } else {
      purge_dirty();  // clean and dirty neighbours do not merge: together they may be enough
    }
    found = find(kind_clean, granules);
    if (found == no_granule) return {};
  }
  counters_.taken.add();
  return carve(found, granules, state);
}

void Spans::give(GranuleIndex first, std::uint64_t now) noexcept {
  const os::LockGuard guard(mutex_);
  const std::uint32_t granules = record(first).granules;
  taken_bytes_.add(std::uint64_t{0} - bytes_of(granules));
  counters_.given.add();
  insert_free(first, State::dirty, granules, now);
  bound_dirty(granules);
}

bool Spans::extend(GranuleIndex first, std::uint32_t granules) noexcept {
  const os::LockGuard guard(mutex_);
  const std::uint32_t have = record(first).granules;
  const std::uint32_t more = granules - have;
  const GranuleIndex behind = first + have;
  const auto frontier = static_cast<GranuleIndex>(window_.extent() >> granule_shift);
  if (behind >= frontier || !is_free(record(behind).state) || record(behind).granules < more) return false;
  const State state = record(first).state;
  carve(behind, more, State::interior);
  record(first).state = state;
  record(first).granules = granules;
  record(behind).state = State::interior;
  record(first + granules - 1).state = State::interior;
  record(first + granules - 1).first = first;
  return true;
}

void Spans::shorten(GranuleIndex first, std::uint32_t granules) noexcept {
  const std::uint64_t now = os::coarse_milliseconds();
  const os::LockGuard guard(mutex_);
  const std::uint32_t have = record(first).granules;
  record(first).granules = granules;
  if (granules > 1) record(first + granules - 1).state = State::interior;
  record(first + granules - 1).first = first;
  taken_bytes_.add(std::uint64_t{0} - bytes_of(have - granules));
  insert_free(first + granules, State::dirty, have - granules, now);
  bound_dirty(have - granules);
}

void Spans::set_first(GranuleIndex i, GranuleIndex first) noexcept {
  const os::LockGuard guard(mutex_);
  record(i).first = first;
  if (i != first) record(i).state = State::interior;
}

// False: the system does not take it; it stays dirty.
bool Spans::purge_span(GranuleIndex first) noexcept {
  const std::uint32_t granules = record(first).granules;
  if (!os::purge(window_.address(first), bytes_of(granules))) return false;
  unlink(first);
  record(first + granules - 1).state = State::interior;
  counters_.purged_bytes.add(bytes_of(granules));
  insert_free(first, State::clean, granules, 0);
  return true;
}

// Each list is in order of time but for merges, so its head is its oldest.
GranuleIndex Spans::oldest_dirty() noexcept {
  GranuleIndex oldest = no_granule;
  for (std::uint64_t left = bitmap_[kind_dirty]; left != 0; left &= left - 1) {
    const GranuleIndex i = free_[kind_dirty][std::countr_zero(left)].head;
    if (oldest == no_granule || record(i).when < record(oldest).when) oldest = i;
  }
  return oldest;
}

void Spans::bound_dirty(std::uint32_t just_given) noexcept {
  const std::uint64_t for_reuse = min_of(2 * bytes_of(just_given), dirty_ceiling_for_reuse);
  const std::uint64_t bound = max_of(retention_.bound(taken_bytes_.read()), for_reuse);
  const std::uint64_t before = counters_.purged_bytes.read();
  while (dirty_bytes_.read() > bound && purge_span(oldest_dirty())) {
  }
  retention_.given_back(counters_.purged_bytes.read() - before);
}

void Spans::decay(std::uint64_t now) noexcept {
  const os::LockGuard guard(mutex_);
  retention_.fade();
  for (GranuleIndex i = oldest_dirty(); i != no_granule && record(i).when + decay_ms_ <= now; i = oldest_dirty()) {
    if (!purge_span(i)) return;
  }
}

void Spans::purge_dirty() noexcept {
  for (GranuleIndex i = oldest_dirty(); i != no_granule && purge_span(i); i = oldest_dirty()) {
  }
}

std::size_t Spans::purge_all() noexcept {
  const os::LockGuard guard(mutex_);
  const std::uint64_t before = counters_.purged_bytes.read();
  purge_dirty();
  return counters_.purged_bytes.read() - before;
}

}  // namespace terrace::span
