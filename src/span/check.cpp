// SPDX-License-Identifier: MIT OR Apache-2.0
// The invariants of spans.h, looked at one by one. For tests; the library itself never calls it.
#include "span/spans.h"

namespace terrace::span {
// A free span and the state of the granule before it.
const char* Spans::check_free(GranuleIndex first, GranuleIndex before) noexcept {
  const Record& r = record(first);
  if (before != no_granule && record(before).state == r.state && (r.state == State::clean || record(before).node == r.node))
    return "S3: two neighbours of the same state";
  for (GranuleIndex i = bins_of(r).head(Bins::bin_of(r.granules)); i != first; i = record(i).free.next) {
    if (i == no_granule) return "S4: a free span is not in its bin";
  }
  return nullptr;
}

const char* Spans::count_listed(const Bins& bins, std::uint64_t& listed) noexcept {
  for (unsigned bin = 0; bin < Bins::count; ++bin) {
    const GranuleIndex head = bins.head(bin);
    if ((head != no_granule) != (bins.first_from(bin) == bin)) return "a bin's bit says other than its list";
    for (GranuleIndex i = head; i != no_granule; i = record(i).free.next) ++listed;
  }
  return nullptr;
}

// As many spans in the lists as were met in the walk: with check_free(), each is in its own list exactly once.
const char* Spans::check_lists(std::uint64_t clean, std::uint64_t dirty, std::uint64_t dirty_bytes) noexcept {
  std::uint64_t listed_clean = 0, listed_dirty = 0;
  const char* broken = count_listed(clean_, listed_clean);
  for (const Bins& bins : dirty_) {
    if (broken == nullptr) broken = count_listed(bins, listed_dirty);
  }
  if (broken != nullptr) return broken;
  if (listed_clean != clean || listed_dirty != dirty) return "S4: a bin has a span that is not free";
  std::uint64_t aged = 0, last = 0;
  for (GranuleIndex i = oldest_; i != no_granule; i = record(i).free.newer) {
    if (record(i).state != State::dirty || record(i).free.when < last) return "S5: the list by age is in disorder";
    if ((record(i).free.newer == no_granule) != (newest_ == i)) return "S5: the newest dirty span is another";
    last = record(i).free.when;
    ++aged;
  }
  if (aged != dirty || dirty_bytes != dirty_bytes_.read()) return "S5: dirty spans are not those by age, or not their sum";
  return nullptr;
}

const char* Spans::check_invariants() noexcept {
  const os::LockGuard guard(mutex_);
  const auto frontier = static_cast<GranuleIndex>(window_.extent() >> granule_shift);
  std::uint64_t clean = 0, dirty = 0, purging = 0, dirty_bytes = 0, taken_bytes = 0;
  GranuleIndex before = no_granule;
  for (GranuleIndex i = 0; i < frontier;) {
    const Record& r = record(i);
    const GranuleIndex own = i;
    i += r.state == State::unmapped ? 1 : r.granules;
    if (r.state == State::interior || i == own || i > frontier) return "S1: a granule belongs to no span";
    if (r.state != State::unmapped && (r.first != own || record(i - 1).first != own))
      return "S2: a granule does not find its first";
    if (r.state == State::clean || r.state == State::dirty) {
      if (const char* const broken = check_free(own, before)) return broken;
      ++(r.state == State::dirty ? dirty : clean);
      if (r.state == State::dirty) dirty_bytes += bytes_of(r.granules);
    } else if (r.state == State::purging) {
      ++purging;
    } else if (r.state != State::unmapped) {
      taken_bytes += bytes_of(r.granules);
    }
    before = own;
  }
  for (GranuleIndex i = purging_; i != no_granule; i = record(i).free.next) --purging;
  if (purging != 0) return "S4: the list of those being purged has others";
  if (taken_bytes != taken_bytes_.read()) return "taken_bytes() is not the sum of what is taken";
  return check_lists(clean, dirty, dirty_bytes);
}

}  // namespace terrace::span
