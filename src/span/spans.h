// SPDX-License-Identifier: MIT OR Apache-2.0
// Spans: runs of granules, taken and given back, split and merged, purged when they were free for long enough.
//
// Free spans are dirty (they hold pages) or clean. Dirty ones are preferred: their pages need no fault. Only neighbours of the
// same state merge, so a clean span stays known to be zero. A dirty span is purged after `decay` milliseconds or when dirty
// memory exceeds its bound, oldest first.
#pragma once

#include "base/counter.h"
#include "os/clock.h"
#include "os/mutex.h"
#include "span/retention.h"
#include "span/window.h"

namespace terrace::span {

struct SpanCounters {  // under the lock
  LockedCounter taken, given, grown, purged_bytes;
};

class Spans {
 public:
  bool open() noexcept { return window_.open(); }

  struct Span {
    GranuleIndex first = no_granule;
    bool zero = false;  // all of it reads as zero
  };
  /// A span of exactly `granules`; its record has only `granules`, `first` and a state set by the caller's `state`.
  /// `worth_keeping`: if such pieces are needed soon after memory was purged, it should have been kept. Not so for slabs of
  /// small blocks, whose faults many blocks share: what a thousand threads that use some of those leave behind is to be little.
  Span take(std::uint32_t granules, State state, bool worth_keeping = true) noexcept;
  void give(GranuleIndex first, std::uint64_t now = os::coarse_milliseconds()) noexcept;
  /// Lengthens a span in place, by what is free behind it. False: nothing was changed.
  bool extend(GranuleIndex first, std::uint32_t granules) noexcept;
  /// Shortens a span in place.
  void shorten(GranuleIndex first, std::uint32_t granules) noexcept;

  /// Makes granule i of a taken span find its first one.
  void set_first(GranuleIndex i, GranuleIndex first) noexcept;

  /// Gives back what has been dirty for longer than the decay time; called now and then by slow paths.
  void decay(std::uint64_t now) noexcept;
  /// Gives back all dirty memory. Bytes purged.
  std::size_t purge_all() noexcept;

  const Window& window() const noexcept { return window_; }
  std::uint64_t dirty_bytes() const noexcept { return dirty_bytes_.read(); }
  std::uint64_t taken_bytes() const noexcept { return taken_bytes_.read(); }
  const SpanCounters& counters() const noexcept { return counters_; }
  os::Mutex& mutex() noexcept { return mutex_; }
  void set_decay(std::uint64_t milliseconds) noexcept { decay_ms_ = milliseconds; }

  /// Dirty memory is purged at once beyond the largest of: this and a quarter of what is or lately was in use beyond 8 MiB,
  /// what should have been kept lately, and twice the span that was given last (a program that takes and gives the same buffer
  /// in a loop should not fault it in even once).
  static constexpr std::uint64_t dirty_floor = 256 * kib;
  static constexpr std::uint64_t dirty_ceiling_for_reuse = 64 * mib;
  static constexpr Retention::Rule retention{.floor = dirty_floor, .small = 8 * mib, .share = 4, .ceiling = 512 * mib};

 private:
  static constexpr unsigned exact_bins = 32;
  static constexpr unsigned bins = exact_bins + 20;
  struct List {
    GranuleIndex head = no_granule;
    GranuleIndex tail = no_granule;
  };
  enum Kind : unsigned { kind_clean = 0, kind_dirty = 1 };

  static unsigned bin_of(std::uint32_t granules) noexcept;
  Record& record(GranuleIndex i) noexcept { return window_.record(i); }
  List& list_of(const Record& r) noexcept;
  void link(GranuleIndex first, State state, std::uint32_t granules, std::uint64_t when) noexcept;
  void unlink(GranuleIndex first) noexcept;
  void insert_free(GranuleIndex first, State state, std::uint32_t granules, std::uint64_t when) noexcept;
  GranuleIndex find(Kind kind, std::uint32_t granules) noexcept;
  Span carve(GranuleIndex first, std::uint32_t granules, State state) noexcept;
  bool purge_span(GranuleIndex first) noexcept;
  GranuleIndex oldest_dirty() noexcept;
  void bound_dirty(std::uint32_t just_given) noexcept;
  void purge_dirty() noexcept;

  os::Mutex mutex_;  // rank: spans; nothing is locked while it is held
  Window window_;
  List free_[2][bins];
  std::uint64_t bitmap_[2] = {0, 0};  // bins that are not empty
  LockedCounter dirty_bytes_, taken_bytes_;
  SpanCounters counters_;
  Retention retention_{retention};  // under the lock
  std::uint64_t decay_ms_ = 1000;
};

}  // namespace terrace::span
