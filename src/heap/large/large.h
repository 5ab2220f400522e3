// SPDX-License-Identifier: MIT OR Apache-2.0
// Blocks above the largest size class: a span each. The block starts a rotating number of cache lines into its span, so that
// large blocks, too, do not all begin in the same cache set.
#pragma once

#include "base/attributes.h"
#include "base/described.h"
#include "base/hardened.h"
#include "heap/classes/placement.h"
#include "heap/classes/span_owners.h"
#include "span/spans.h"

namespace terrace::heap {

/// Where the pages of a block lie.
//
// Moved pages never become one mapping with their new neighbours: the kernel remembers where they were first touched. So a
// span that is apart is mapped anew when it is given back, and merges with its neighbours then. Its last granule stays in the
// window's own mapping: fresh memory between two spans apart would get an anon_vma of its own, and never merge either.
enum class Lies : std::uint8_t {
  in_place,  // in the window's own mapping
  apart,     // in a mapping of its own, and the last granule is a seam
  both,      // it was lengthened since: in a mapping of its own, and goes on in the window's
  kept,      // in place and free: kept in a slot
};

/// Owned by the thread that has the block.
struct LargeRecord {
  std::uint64_t requested;  // bytes asked for
  std::uint64_t filled;     // the most that was asked for since pages of it were given back last
  std::uint32_t line;       // offset of the block in its span
  std::uint32_t sample;     // of the heap profiler; 0: the block is not sampled
  Lies lies;
};

struct LargeCounters {
  SharedCounter allocated, freed, grown_in_place, moved, live_bytes;
  SharedCounter apart;  // blocks that lie in a mapping of their own, since their pages were moved there
};

class Large {
 public:
  void open(span::Spans& spans, Placement placement) noexcept {
    spans_ = &spans;
    rotate_ = placement != Placement::none;
    page_ = os::page_size();
  }

  /// Null when memory is short. `zeroed`: all of it reads as zero, whatever was written to it after it was freed. Requires a
  /// power of two for align.
  /// In a span of that NUMA node.
  void* allocate(std::size_t size, std::size_t align, bool zeroed = false, unsigned node = 0) noexcept;
  /// Requires is_block(p). `now` in coarse milliseconds.
  void free(void* p, std::uint64_t now) noexcept;
  /// Whether p is the start of a large block.
  bool is_block(const void* p) const noexcept {
    if (!spans_->window().contains(p)) return false;
    const span::Record& r = record_of(p);
    return is_live(r) && starts_at(r, p);
  }
  /// Usable bytes of the block that starts at p; 0 when none does. Requires that p lies in the window.
  TERRACE_INLINE std::size_t usable_size(const void* p) const noexcept {
    const span::Record& r = record_of(p);
    if (!is_live(r) || !starts_at(r, p)) return 0;
    const LargeRecord& l = part(r);
    // A sampled small block is no longer than others of its class: realloc leaves them in place as far as this.
    if (l.sample != 0 && l.requested <= SizeRule::largest) [[unlikely]]
      return l.requested;
    return round_up(l.line + l.requested, page_) - l.line;
  }

  // A freed block that is kept for the next request, see heap/levels/large_slots.h. is_block() is false for it; it counts as
  // live.
  /// The record of p if p may be kept, else null. Requires is_block(p).
  LargeRecord* keepable(const void* p) const noexcept {
    LargeRecord& l = part(record_of(p));
    return !hardened && l.lies == Lies::in_place ? &l : nullptr;
  }
  static void set_kept(LargeRecord& l) noexcept { l.lies = Lies::kept; }
  /// A block that was kept is live again, as it is.
  void set_in_place(void* p) noexcept { part(record_of(p)).lies = Lies::in_place; }
  /// A block that was kept is live again, with `size` bytes. False: it is too short or too long; it is as it was.
  bool reuse(void* p, std::size_t size) noexcept {
    span::Record& r = record_of(p);
    LargeRecord& l = part(r);
    const std::uint32_t want = granules_for(l.line + size);
    if (r.granules < want || r.granules > want + want / reuse_slack) return false;
    if (l.requested != size) set_live_bytes(l, size);
    l.lies = Lies::in_place;
    return true;
  }
  /// As free(), of a block that was kept.
  void give_up(void* p, std::uint64_t now) noexcept;
  static bool is_kept(const span::Record& r) noexcept { return r.state == large_span && part(r).lies == Lies::kept; }
  bool is_kept(const void* p) const noexcept { return is_kept(record_of(p)); }
  /// As is_block(), of one that is kept.
  bool is_kept_block(const void* p) const noexcept {
    if (!spans_->window().contains(p)) return false;
    const span::Record& r = record_of(p);
    return is_kept(r) && starts_at(r, p);
  }
  /// What was asked for; of any block, kept or not.
  std::size_t requested(const void* p) const noexcept {
    return __atomic_load_n(&part(record_of(p)).requested,
                           __ATOMIC_RELAXED);  // relaxed: statistics read it of blocks that others have
  }

  // The heap profiler's number. Requires is_block(p).
  std::uint32_t sample_of(const void* p) const noexcept { return part(record_of(p)).sample; }
  void set_sample(void* p, std::uint32_t sample) noexcept { part(record_of(p)).sample = sample; }

  /// Lengthens or shortens in place. False: nothing was changed.
  bool resize(void* p, std::size_t size) noexcept;
  /// A block of `size` with the contents of p, whose pages were moved, or copied where that does not work. p is gone on
  /// success. Null when memory is short, or when p is too small for this to be worth it; p is as it was.
  void* move(void* p, std::size_t size) noexcept;

  /// A block apart splits the mapping in which it lies and so adds two mappings. At most one such block per 64 mappings of
  /// Linux' default limit, that is, a 32nd of the limit; beyond that pages are copied. The machine's own limit is not read: at
  /// the start that costs each process four system calls, and later a sandbox may end the process for them.
  static constexpr std::size_t most_apart = os::usual_mappings / 64;

  const LargeCounters& counters() const noexcept { return counters_; }

 private:
  friend struct introspect::Layout;
  /// The record of the span that p points into, if that is where a block may start; else of no large span.
  span::Record& record_of(const void* p) const noexcept {
    const span::Window& window = spans_->window();
    span::Record& own = window.record(window.index_of(p));
    return own.state == span::State::interior ? window.record(own.first) : own;
  }
  static bool is_live(const span::Record& r) noexcept { return r.state == large_span && part(r).lies != Lies::kept; }
  static LargeRecord& part(span::Record& r) noexcept { return r.owners_part<LargeRecord>(); }
  static const LargeRecord& part(const span::Record& r) noexcept { return r.owners_part<LargeRecord>(); }
  bool starts_at(const span::Record& r, const void* p) const noexcept { return start_of(r) + part(r).line == p; }
  static std::uint32_t granules_for(std::size_t bytes) noexcept {
    return static_cast<std::uint32_t>((bytes + span::granule_size - 1) >> span::granule_shift);
  }
  void set_live_bytes(LargeRecord& l, std::size_t size) noexcept;
  static constexpr std::uint32_t seam = 1;         // granules
  static constexpr std::uint32_t reuse_slack = 4;  // a kept block serves requests that leave at most a quarter more
  // The granules of a block that are one mapping, unless somebody else has split it.
  static std::uint32_t movable_granules(const span::Record& r) noexcept {
    return r.granules - (part(r).lies == Lies::apart ? seam : 0);
  }

  static void set_requested(LargeRecord& l, std::size_t size) noexcept {
    __atomic_store_n(&l.requested, size, __ATOMIC_RELAXED);  // see requested()
  }
  static void begin(LargeRecord& l, std::uint32_t line, std::size_t size) noexcept {
    l.lies = Lies::in_place;
    l.line = line;
    l.sample = 0;
    l.filled = size;
    set_requested(l, size);
  }
  std::byte* start_of(const span::Record& r) const noexcept { return spans_->window().address(r.first); }
  std::size_t length_of(const span::Record& r) const noexcept { return std::size_t{r.granules} << span::granule_shift; }
  void make_zero(const span::Spans::Span& found, void* p, std::size_t size) noexcept;
  bool start_move(const span::Record& from, std::uint32_t granules) noexcept;
  bool finish_move(const span::Record& from, span::Record& to) noexcept;
  void shorten(span::Record& r, std::uint32_t granules, std::size_t size) noexcept;
  void shorten_apart(span::Record& r, std::uint32_t granules) noexcept;
  void release(span::Record& r, std::uint64_t now) noexcept;
  void replace(span::GranuleIndex first) noexcept;

  span::Spans* spans_ = nullptr;
  bool rotate_ = true;
  std::size_t page_ = 0;
  LargeCounters counters_;
};

}  // namespace terrace::heap
