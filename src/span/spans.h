// SPDX-License-Identifier: MIT OR Apache-2.0
// Spans: runs of granules, taken and given back, split and merged, purged when they were free for long enough.
//
// Free spans are dirty (they hold pages) or clean. Dirty ones are preferred: their pages need no fault. Only neighbours of the
// same state merge, and dirty ones of the same node, so a clean span stays known to have no pages. A dirty span is purged after
// `decay` milliseconds or when dirty memory exceeds its bound, oldest first.
//
// The lock is never held across a system call that gives pages back: whoever purges takes the span out of all lists
// (State::purging), unlocks, calls the kernel, locks, and inserts the span again as clean. Meanwhile nobody finds it, and no
// neighbour merges with it.
//
// Invariants, whenever the lock is free (check_invariants()):
//   S1  every granule below the frontier belongs to one span, or is unmapped (an obstacle)
//   S2  `first` is right at the first and the last granule of each span
//   S3  no two neighbours are both clean, or both dirty and of the same node
//   S4  a free span is in exactly one list: clean or dirty bins by its length, or the list of those being purged
//   S5  every dirty span is in the list by age, whose times never fall from older to newer; dirty_bytes() is their sum
#pragma once

#include "base/counter.h"
#include "base/described.h"
#include "os/clock.h"
#include "os/mutex.h"
#include "span/bins.h"
#include "span/demand.h"
#include "span/refaults.h"
#include "span/window.h"

namespace terrace::span {

struct SpanCounters {  // under the lock
  LockedCounter taken, given, grown, purged_bytes;
};

/// What the owner of a span makes of it.
enum class Cut : std::uint8_t {
  whole,   // one piece
  coarse,  // pieces with pages of their own; each granule finds the first
  fine,    // pieces that share pages, and so share faults; each granule finds the first
};

class Spans {
 public:
  /// False: no memory; to be tried again.
  bool open() noexcept;

  struct Span {
    GranuleIndex first = no_granule;
    bool clean = false;      // it has no pages, unless a program wrote to memory that it had freed
    bool untouched = false;  // it was never taken before, so that it reads as zero whatever the program did
  };
  /// A span of exactly `granules`, in the state of its owner, taken_by(n); the owner's part of its record holds anything.
  /// If it is needed soon after memory was purged, that should have been kept; not where it is cut finely, since what a
  /// thousand threads that use some such pieces leave behind is to be little. A span is bound to the NUMA node that takes it:
  /// its pages lie there, since it is touched there first, and when it is free and dirty the same node gets it before others
  /// do. It begins at a multiple of `align`, a power of two, as of a granule anyway.
  Span take(std::uint32_t granules, State state, Cut cut = Cut::whole, unsigned node = 0, std::size_t align = 0) noexcept;
  /// Whether such a span would have to be mapped, and the last one that had to was refused: a shorter one is to be tried first.
  bool is_short_of(std::uint32_t granules) noexcept;
  /// Gives a span back, then purges what exceeds the bound, without any lock: the caller holds none that others need.
  void give(GranuleIndex first, std::uint64_t now = os::coarse_milliseconds()) noexcept;
  /// The first half of give(), for callers that hold a lock; settle() follows when they hold it no more.
  void give_unsettled(GranuleIndex first, std::uint64_t now = os::coarse_milliseconds()) noexcept;
  /// Purges what exceeds the bound.
  void settle() noexcept;
  /// As give(), of a span that the caller has mapped anew.
  void give_fresh(GranuleIndex first) noexcept;
  /// As give(), of a span that can not be used any more, since it could not be mapped anew.
  void lose(GranuleIndex first) noexcept;
  /// Lengthens a span in place, by what is free behind it. False: nothing was changed.
  bool extend(GranuleIndex first, std::uint32_t granules) noexcept;
  /// Shortens a span in place; as give().
  void shorten(GranuleIndex first, std::uint32_t granules) noexcept;
  /// The same, or leaves it as long as it is, and gives its pages from `from` on back at once, unless so much is wanted again
  /// and again. `from` lies in the last granule that is left, or at its end.
  void shorten(GranuleIndex first, std::uint32_t granules, std::byte* from) noexcept;
  /// Shortens a span in place; what is behind becomes a taken span of its own. Its first granule.
  GranuleIndex split(GranuleIndex first, std::uint32_t granules) noexcept;

  /// Gives back what has been dirty for longer than the decay time; called now and then by slow paths.
  void decay(std::uint64_t now) noexcept;
  /// Gives dirty memory back, oldest first, until no more than `bytes` are left. Bytes purged.
  std::uint64_t purge_down_to(std::uint64_t bytes) noexcept;
  /// The same, but what is needed again will not be kept for that.
  std::uint64_t purge_at_rest(std::uint64_t bytes) noexcept;
  /// Gives back all dirty memory but what other threads are about to. Bytes purged.
  std::size_t purge_all() noexcept;

  /// Bytes that were in use within the last seconds and are not now, up to 48 MiB.
  std::uint64_t freed_lately() noexcept { return demand_.freed_lately(in_use_bytes()); }
  /// By owners: something was taken for the program that needs pages.
  __attribute__((noinline)) void on_take() noexcept { demand_.on_take(os::coarse_milliseconds()); }
  /// By owners: the program does not need so many bytes any more.
  void forget(std::uint64_t bytes) noexcept { demand_.forget(bytes); }
  bool demand_rests(std::uint64_t now) const noexcept { return demand_.rests(now); }
  /// What of one kind, free spans or free blocks in slabs, may keep its pages: a share of what is or lately was in use, or what
  /// should have been kept, and what has just become free.
  std::uint64_t may_keep(const Refaults& refaults) noexcept {
    const std::uint64_t freed = freed_lately(), peak = demand_.peak();
    const std::uint64_t usual = kept_floor + (peak - min_of(peak, kept_small)) / kept_share;
    return max_of(usual, refaults.allowance()) + freed;
  }
  /// Free memory beyond the bound on all of it, because large blocks needed again what that bound had given back.
  std::uint64_t refaulted_beyond_bound() const noexcept { return beyond_.allowance(); }

  const Window& window() const noexcept { return window_; }
  std::uint64_t dirty_bytes() const noexcept { return dirty_bytes_.read(); }
  std::uint64_t taken_bytes() const noexcept { return taken_bytes_.read(); }
  /// Of these, without what their owners hold unused: what the allowances are shares of. Three numbers, read one after the
  /// other.
  std::uint64_t in_use_bytes() const noexcept {
    const std::uint64_t cut = cut_bytes(), to_cut = to_cut_bytes_.read(), taken = taken_bytes_.read();
    return taken - min_of(taken, to_cut - min_of(to_cut, cut));
  }
  /// By owners: of the bytes of spans that they cut, those that are cut; both are modulo 2^64.
  void add_to_cut(std::uint64_t bytes) noexcept { to_cut_bytes_.add(bytes); }
  void add_cut(std::uint64_t bytes) noexcept { cut_bytes_.add(bytes); }
  std::uint64_t cut_bytes() const noexcept { return cut_bytes_.read(); }
  const SpanCounters& counters() const noexcept { return counters_; }
  os::RankedMutex<os::Rank::spans>& mutex() noexcept { return mutex_; }
  void set_decay(std::uint64_t milliseconds) noexcept { decay_ms_ = milliseconds; }

  /// In a forked child, which has one thread: the lock is free, and what other threads were purging is dirty again.
  void reset_after_fork() noexcept;

  /// Whether granule i was taken once and is free now. A walk to the start of its span: for reports of misuse.
  bool is_free_again(GranuleIndex i) noexcept;
  /// The invariant that does not hold, in words; null when all do. For tests: a walk over all records.
  const char* check_invariants() noexcept;

  /// See may_keep(); without a share up to so many bytes in use.
  static constexpr std::uint64_t kept_floor = 256 * kib, kept_small = 8 * mib, kept_share = 4;
  /// What slabs and spans may keep because of refaults, and what large blocks may beyond the bound.
  static constexpr std::uint64_t most_refaulted = 512 * mib, most_beyond_bound = 64 * mib;

 private:
  friend struct introspect::Layout;
  Bins& bins_of(const Record& r) noexcept { return r.state == State::dirty ? dirty_[r.node] : clean_; }

  Record& record(GranuleIndex i) noexcept { return window_.record(i); }
  void set_ends(GranuleIndex first, std::uint32_t granules) noexcept;
  void link(GranuleIndex first, State state, std::uint32_t granules, std::uint64_t when, GranuleIndex newer) noexcept;
  void unlink(GranuleIndex first) noexcept;
  void insert_by_age(GranuleIndex first, GranuleIndex newer) noexcept;
  void remove_by_age(GranuleIndex first) noexcept;
  void insert_given(GranuleIndex first, std::uint64_t now) noexcept;
  GranuleIndex insert_free(GranuleIndex first, State state, std::uint32_t granules, std::uint64_t when,
                           std::uint32_t bare = 0) noexcept;
  __attribute__((noinline)) GranuleIndex find(std::uint32_t granules, Cut cut, unsigned node) noexcept;
  GranuleIndex find_when_short(std::uint32_t granules) noexcept;
  std::uint32_t front(GranuleIndex first, std::size_t align) const noexcept;
  __attribute__((noinline)) GranuleIndex find_aligned(std::uint32_t granules, Cut cut, unsigned node,
                                                      std::size_t align) noexcept;
  GranuleIndex align_free(GranuleIndex first, std::size_t align) noexcept;
  __attribute__((noinline)) void insert_grown(GranuleIndex first, std::uint32_t granules) noexcept;
  __attribute__((noinline)) std::uint32_t clean_at_frontier() noexcept;
  GranuleIndex grow(std::uint32_t granules) noexcept;
  __attribute__((noinline)) Span carve(GranuleIndex first, std::uint32_t granules, State state, Cut cut,
                                       unsigned node) noexcept;
  void link_purging(GranuleIndex first) noexcept;
  void unlink_purging(GranuleIndex first) noexcept;
  std::uint64_t purge_oldest() noexcept;
  void strip(GranuleIndex first) noexcept;
  std::uint64_t purge_beyond(std::uint64_t bytes) noexcept;
  void purge_beyond_bound() noexcept;
  void doubt_clean() noexcept;
  bool wait_for_purges(int& waits) noexcept;
  const char* check_free(GranuleIndex first, GranuleIndex before) noexcept;
  const char* count_listed(const Bins& bins, std::uint64_t& listed) noexcept;
  const char* check_lists(std::uint64_t clean, std::uint64_t dirty, std::uint64_t dirty_bytes) noexcept;

  Window window_;
  std::uint64_t decay_ms_ = 1000;
  // Above is what every free reads.
  alignas(cache_line) os::RankedMutex<os::Rank::spans> mutex_;  // nothing is locked while it is held
  GranuleIndex untouched_ = 0;                                  // from here on nothing was ever taken
  GranuleIndex oldest_ = no_granule, newest_ = no_granule;      // dirty spans by age
  GranuleIndex purging_ = no_granule;                           // a list
  bool doubted_ = false;                                        // clean spans, since locked pages were met
  SpanCounters counters_;
  Bins clean_;
  Bins dirty_[most_nodes];
  // Below is what is read without the lock.
  alignas(cache_line) SharedCounter cut_bytes_, to_cut_bytes_;
  LockedCounter dirty_bytes_, taken_bytes_;
  Demand demand_;
  Refaults refaults_{most_refaulted}, beyond_{most_beyond_bound};  // written under the lock
};

}  // namespace terrace::span
