// SPDX-License-Identifier: MIT OR Apache-2.0
#include "span/spans.h"

#include "base/assert.h"

namespace terrace::span {
namespace {

// Waits of 50 us, all in all 200 ms: a thread that purges may have been stopped for good, by a signal handler that waits here.
constexpr int most_waits = 4000;

bool is_free(State s) noexcept { return s == State::clean || s == State::dirty; }
// Granules that a span has to have beside those that are wanted.
std::uint32_t slack(std::size_t align) noexcept {
  return align > granule_size ? static_cast<std::uint32_t>((align >> granule_shift) - 1) : 0;
}

}  // namespace

bool Spans::open() noexcept {
  std::uint32_t mapped = 0;
  if (!window_.open(mapped)) return false;
  const os::LockGuard guard(mutex_);
  if (mapped != 0) insert_grown(0, mapped);
  return true;
}

void Spans::insert_grown(GranuleIndex first, std::uint32_t granules) noexcept {
  counters_.grown.add();
  insert_free(first, State::clean, granules, 0);
}

// The last granule, and with one granule the first as well, tells where the span begins.
void Spans::set_ends(GranuleIndex first, std::uint32_t granules) noexcept {
  record(first).granules = granules;
  record(first).first = first;
  if (granules > 1) record(first + granules - 1).state = State::interior;
  record(first + granules - 1).first = first;
}

// Before `newer`, at the end with no_granule. There the time is at least that of the last one, whatever the clocks of two
// threads said: S5.
void Spans::insert_by_age(GranuleIndex first, GranuleIndex newer) noexcept {
  FreePart& f = record(first).free;
  f.newer = newer;
  f.older = newer == no_granule ? newest_ : record(newer).free.older;
  if (newer == no_granule && newest_ != no_granule) f.when = max_of(f.when, record(newest_).free.when);
  (f.older == no_granule ? oldest_ : record(f.older).free.newer) = first;
  (newer == no_granule ? newest_ : record(newer).free.older) = first;
}

void Spans::remove_by_age(GranuleIndex first) noexcept {
  const FreePart& f = record(first).free;
  (f.older == no_granule ? oldest_ : record(f.older).free.newer) = f.newer;
  (f.newer == no_granule ? newest_ : record(f.newer).free.older) = f.older;
}

// `newer`: the place of a dirty span by age, see insert_by_age().
void Spans::link(GranuleIndex first, State state, std::uint32_t granules, std::uint64_t when, GranuleIndex newer) noexcept {
  set_ends(first, granules);
  record(first).state = state;
  record(first).free.when = when;
  bins_of(record(first)).insert(window_, first);
  if (state != State::dirty) return;
  insert_by_age(first, newer);
  dirty_bytes_.add(bytes_of(granules));
}

void Spans::unlink(GranuleIndex first) noexcept {
  const Record& r = record(first);
  bins_of(r).remove(window_, first);
  if (r.state != State::dirty) return;
  remove_by_age(first);
  dirty_bytes_.add(std::uint64_t{0} - bytes_of(r.granules));
}

// The neighbours' records tell whether they are free: the first granule of the one behind, the last of the one before. Where
// the span begins now. Its node stands in its record. `bare`: see FreePart; means nothing for a dirty one.
GranuleIndex Spans::insert_free(GranuleIndex first, State state, std::uint32_t granules, std::uint64_t when,
                                std::uint32_t bare) noexcept {
  const auto frontier = static_cast<GranuleIndex>(window_.extent() >> granule_shift);
  const std::uint8_t node = record(first).node;
  const auto fits = [=](const Record& r) { return r.state == state && (state == State::clean || r.node == node); };
  if (first + granules < frontier && fits(record(first + granules))) {
    const Record& behind = record(first + granules);
    const std::uint32_t more = behind.granules;
    when = max_of(when, behind.free.when);
    bare += behind.free.bare;
    unlink(first + granules);
    record(first + granules).state = State::interior;
    granules += more;
  }
  if (first > 0) {
    const Record& last = record(first - 1);
    const GranuleIndex before = last.state == State::interior ? last.first : first - 1;
    if (fits(record(before)) && before + record(before).granules == first) {
      unlink(before);
      when = max_of(when, record(before).free.when);
      bare += record(before).free.bare;
      granules += record(before).granules;
      record(first).state = State::interior;
      first = before;
    }
  }
  link(first, state, granules, when, no_granule);
  if (state == State::clean) record(first).free.bare = bare;
  return first;
}

// What is left over keeps its state, and its age.
Spans::Span Spans::carve(GranuleIndex first, std::uint32_t granules, State state, Cut cut, unsigned node) noexcept {
  const State was = record(first).state;
  TERRACE_ASSERT(is_free(was) && record(first).granules >= granules, "spans: what is taken is not free, or too short");
  const std::uint32_t length = record(first).granules;
  const std::uint64_t when = record(first).free.when;
  const GranuleIndex newer = record(first).free.newer;  // means nothing for a clean one
  const std::uint32_t bare = record(first).free.bare;   // means nothing for a dirty one
  unlink(first);
  if (length > granules) {
    record(first + granules).node = record(first).node;
    link(first + granules, was, length - granules, when, newer);
    if (was == State::clean) record(first + granules).free.bare = min_of(bare, length - granules);
  }
  set_ends(first, granules);
  record(first).state = state;
  record(first).node = static_cast<std::uint8_t>(node % most_nodes);
  if (cut != Cut::whole) {
    for (std::uint32_t g = 1; g < granules; ++g) record(first + g).first = first;
  }
  taken_bytes_.add(bytes_of(granules));
  const bool untouched = first >= untouched_;
  untouched_ = max_of(untouched_, first + granules);
  return {.first = first, .clean = was == State::clean, .untouched = untouched};
}

GranuleIndex Spans::find(std::uint32_t granules, Cut cut, unsigned node) noexcept {
  const GranuleIndex dirty = dirty_[node % most_nodes].find(window_, granules);
  if (dirty != no_granule) return dirty;
  if (cut != Cut::fine) refaults_.on_refault(bytes_of(granules));
  return clean_.find(window_, granules);
}

// The clean span that ends at the frontier, if there is one: what is mapped behind it becomes a part of it. Granules.
std::uint32_t Spans::clean_at_frontier() noexcept {
  const auto frontier = static_cast<GranuleIndex>(window_.extent() >> granule_shift);
  if (frontier == 0) return 0;
  const Record& last = record(frontier - 1);
  const Record& r = last.state == State::interior ? record(last.first) : last;
  return r.state == State::clean ? r.granules : 0;
}

// Where an obstacle is at the frontier, the two do not become one, and all is asked for.
GranuleIndex Spans::grow(std::uint32_t granules) noexcept {
  GranuleIndex found = no_granule;
  for (std::uint32_t there = min_of(clean_at_frontier(), granules - 1);; there = 0) {
    std::uint32_t mapped = 0;
    const GranuleIndex first = window_.grow(granules - there, mapped);
    if (first == no_granule) return no_granule;
    insert_grown(first, mapped);
    found = clean_.find(window_, granules);
    if (found != no_granule || there == 0) return found;
  }
}

// The last means before memory is refused: every span of the own bins is looked at, of any node, and neighbours that do not
// merge while they are dirty are together enough perhaps. While pages are given back the lock is free: others give spans then.
GranuleIndex Spans::find_when_short(std::uint32_t granules) noexcept {
  for (int waits = most_waits;;) {
    GranuleIndex found = clean_.find(window_, granules, Bins::all_candidates);
    for (unsigned node = 0; node < most_nodes && found == no_granule; ++node)
      found = dirty_[node].find(window_, granules, Bins::all_candidates);
    if (found != no_granule || (purge_beyond(0) == 0 && !wait_for_purges(waits))) return found;
  }
}

// Granules before the first multiple of `align`.
std::uint32_t Spans::front(GranuleIndex first, std::size_t align) const noexcept {
  const std::uintptr_t start = address_of(window_.address(first));
  return static_cast<std::uint32_t>((round_up(start, align) - start) >> granule_shift);
}

// A span that was aligned before serves again; any other has to be longer by what may lie before the multiple of `align`.
GranuleIndex Spans::find_aligned(std::uint32_t granules, Cut cut, unsigned node, std::size_t align) noexcept {
  const GranuleIndex dirty = dirty_[node % most_nodes].find(window_, granules);
  if (dirty != no_granule && front(dirty, align) + granules <= record(dirty).granules) return dirty;
  return find(granules + slack(align), cut, node);
}

// Cuts the front off a free span, so that the rest begins at a multiple of `align`. Where that begins.
GranuleIndex Spans::align_free(GranuleIndex first, std::size_t align) noexcept {
  const std::uint32_t front = this->front(first, align);
  if (front == 0) return first;
  const Record& r = record(first);
  const State state = r.state;
  const std::uint32_t length = r.granules, bare = r.free.bare;  // means nothing for a dirty one
  const std::uint64_t when = r.free.when;
  const GranuleIndex newer = r.free.newer, rest = first + front;
  unlink(first);
  record(rest).node = r.node;
  link(rest, state, length - front, when, newer);
  link(first, state, front, when, rest);
  if (state == State::clean) {
    record(first).free.bare = min_of(bare, front);
    record(rest).free.bare = min_of(bare, length - front);
  }
  return rest;
}

Spans::Span Spans::take(std::uint32_t granules, State state, Cut cut, unsigned node, std::size_t align) noexcept {
  const os::LockGuard guard(mutex_);
  GranuleIndex found = align > granule_size ? find_aligned(granules, cut, node, align) : find(granules, cut, node);
  if (cut == Cut::whole && (found == no_granule || record(found).state == State::clean)) beyond_.on_refault(bytes_of(granules));
  if (found == no_granule) found = grow(granules + slack(align));
  if (found == no_granule) found = find_when_short(granules + slack(align));
  if (found == no_granule) return {};
  counters_.taken.add();
  if (align > granule_size) found = align_free(found, align);
  const Span taken = carve(found, granules, state, cut, node);
  freed_lately();  // remembers what is in use
  return taken;
}

bool Spans::is_short_of(std::uint32_t granules) noexcept {
  const os::LockGuard guard(mutex_);
  return window_.was_refused() && dirty_bytes_.read() == 0 && clean_.find(window_, granules) == no_granule;
}

void Spans::insert_given(GranuleIndex first, std::uint64_t now) noexcept {
  TERRACE_ASSERT(record(first).state >= State::interior && record(first).first == first, "spans: what is given was not taken");
  const std::uint32_t granules = record(first).granules;
  taken_bytes_.add(std::uint64_t{0} - bytes_of(granules));
  counters_.given.add();
  insert_free(first, State::dirty, granules, now);
}

void Spans::give_unsettled(GranuleIndex first, std::uint64_t now) noexcept {
  const os::LockGuard guard(mutex_);
  insert_given(first, now);
}

void Spans::give(GranuleIndex first, std::uint64_t now) noexcept {
  const os::LockGuard guard(mutex_);
  insert_given(first, now);
  purge_beyond_bound();
}

void Spans::give_fresh(GranuleIndex first) noexcept {
  const os::LockGuard guard(mutex_);
  const std::uint32_t granules = record(first).granules;
  taken_bytes_.add(std::uint64_t{0} - bytes_of(granules));
  counters_.given.add();
  insert_free(first, State::clean, granules, 0);
}

void Spans::lose(GranuleIndex first) noexcept {
  const os::LockGuard guard(mutex_);
  const std::uint32_t granules = record(first).granules;
  taken_bytes_.add(std::uint64_t{0} - bytes_of(granules));
  counters_.given.add();
  window_.lose(first, granules);
}

bool Spans::extend(GranuleIndex first, std::uint32_t granules) noexcept {
  const os::LockGuard guard(mutex_);
  const std::uint32_t have = record(first).granules;
  const std::uint32_t more = granules - have;
  const GranuleIndex behind = first + have;
  const auto frontier = static_cast<GranuleIndex>(window_.extent() >> granule_shift);
  if (behind >= frontier || !is_free(record(behind).state) || record(behind).granules < more) return false;
  if (record(behind).state == State::clean) refaults_.on_refault(bytes_of(more));
  carve(behind, more, State::interior, Cut::whole, record(first).node);
  set_ends(first, granules);
  return true;
}

void Spans::shorten(GranuleIndex first, std::uint32_t granules) noexcept { give(split(first, granules)); }

GranuleIndex Spans::split(GranuleIndex first, std::uint32_t granules) noexcept {
  const os::LockGuard guard(mutex_);
  const GranuleIndex rest = first + granules;
  const std::uint32_t more = record(first).granules - granules;
  set_ends(first, granules);
  set_ends(rest, more);
  record(rest).node = record(first).node;
  record(rest).state = State::interior;  // nothing of its owner's starts here
  counters_.taken.add();
  return rest;
}

// Granules within a free span say that they are interior, or nothing: unmapped.
bool Spans::is_free_again(GranuleIndex i) noexcept {
  const os::LockGuard guard(mutex_);
  if (i >= untouched_) return false;
  GranuleIndex first = i;
  while (first != 0 && (record(first).state == State::interior || record(first).state == State::unmapped)) --first;
  const Record& r = record(first);
  return r.state > State::unmapped && r.state < State::interior && i - first < r.granules;
}

}  // namespace terrace::span
