// SPDX-License-Identifier: MIT OR Apache-2.0
// The state of a LAB heap. It lies in memory that the embedder brings: this object, then the buffers of all levels.
//
// A request is for `desired` bytes or, if a buffer is about to end, for what is left, but not below `min`. It goes up through
// the levels until one serves it; a level that has no room refills its buffer by a request to those above:
//
//   thread -> core -> processor -> node -> source
//
// Invariants
//   I1  A byte of the space belongs to one of: the source, a buffer's [top, end), somebody's hands (a range that was taken and
//       not installed yet), the sidelined, an object, a filler. Objects and fillers stay what they are until a collection.
//   I2  A closed buffer, whose top is `refilling` or `draining`, is written by the thread that has closed it, and by no other.
//       end changes only then.
//   I3  top <= end, unless closed; both are multiples of the alignment.
//   I5  A buffer's range goes on for `reserve` bytes behind end: at least min_fill where that is more than the alignment, else
//       nothing. So its tail is never too short to be filled, however it was allocated from.
#pragma once

#include "arch/sequences.h"
#include "base/counter.h"
#include "lab/sizing.h"
#include "level/levels.h"
#include "level/per_slot.h"
#include "os/mutex.h"
#include "terrace/lab_emit.h"

#include <atomic>
#include <bit>

namespace terrace::lab {

inline constexpr std::uint64_t refilling = TERRACE_LAB_REFILLING;
inline constexpr std::uint64_t draining = refilling | 1;  // another value, so that one who drains sees that a refill was faster
constexpr bool is_closed(std::uint64_t top) noexcept { return top >= refilling; }
inline constexpr std::size_t no_false_sharing = 128;  // pairs of lines are prefetched together

struct Range {
  std::uint64_t start = 0, end = 0;
  bool empty() const noexcept { return start == end; }
  explicit operator bool() const noexcept { return !empty(); }
  std::size_t size() const noexcept { return end - start; }
};

struct Request {
  std::size_t min, desired;
  bool from_source = false;  // what was handed out came from there
};

/// What of a level's buffer was counted; by whoever refills or retires it, so one writer at a time.
struct Counts {
  LockedCounter labs, lab_bytes, short_labs, transactions, partial, wasted_bytes, retired_bytes;
};

void add(Counts& sum, const Counts& more) noexcept;

/// A buffer of the core level or above. Line 1 is for everybody who allocates, line 2 for refills.
struct alignas(no_false_sharing) Buffer {
  std::atomic<std::uint64_t> top;  // at 0 and 8: words of a bump sequence
  std::atomic<std::uint64_t> end;
  std::uint64_t start;
  std::uint64_t bytes;               // went through it since the last collection, without those since `start`
  std::atomic<std::size_t> desired;  // size of the next one
  std::uint64_t drained_top;         // of who drains it, under a lock: what top was
  Share share;
  alignas(no_false_sharing) Counts counts;
  // Events that somebody else may cause.
  std::atomic<std::uint64_t> foreign, busy, neighbours, failed, invalid, sidelined, sidelined_bytes;
};
inline constexpr int buffer_shift = TERRACE_LAB_BUFFER_SHIFT;
static_assert(sizeof(Buffer) == std::size_t{1} << buffer_shift);
static_assert(offsetof(Buffer, top) == TERRACE_LAB_BUFFER_TOP_OFFSET && offsetof(Buffer, end) == TERRACE_LAB_BUFFER_END_OFFSET);

class Heap;

/// relaxed: who refills by critical sections reads it before the buffer is his; an old size is as good.
inline std::size_t size_of(const Buffer& b) noexcept { return b.desired.load(std::memory_order_relaxed); }
inline void set_size(Buffer& b, std::size_t bytes) noexcept { b.desired.store(bytes, std::memory_order_relaxed); }

/// What terrace_lab_thread is inside.
struct Thread {
  std::uint64_t top, end;
  std::uint64_t active;  // has begun to take objects from the core's buffer since the last collection, see Heap::collected()
  // What an allocation from the core's buffer reads. Where it has to take the long way, core_buffers is null and the area is
  // that at offset 0 from the thread pointer: no descriptor is ever there, and nothing is written to it.
  std::byte* core_buffers;
  arch::Area area;
  std::uint64_t start;
  Heap* heap;
  Thread *next, *previous;
  std::size_t desired;
  std::size_t waste_limit;  // a tail larger than this is kept, and the object allocated elsewhere
  std::uint64_t bytes;      // allocated since the last collection, without those since `start`
  std::uint64_t earlier;    // and before that
  Share share;
  Counts counts;
  LockedCounter direct, direct_bytes, padding_bytes;
};
static_assert(sizeof(Thread) <= sizeof(terrace_lab_thread) && offsetof(Thread, top) == TERRACE_LAB_TOP_OFFSET &&
              offsetof(Thread, end) == TERRACE_LAB_END_OFFSET && offsetof(Thread, active) == TERRACE_LAB_ACTIVE_OFFSET);

/// Ranges that could not be installed ([MP-RCS] 5.1), were not needed at once, or were drained. Few, and rarely any.
class Sidelined {
 public:
  /// False: there is no place for it.
  bool put(Range lab) noexcept;
  /// One of at least `min` bytes; empty when there is none.
  Range take(std::size_t min) noexcept;
  /// A piece of one for `r`; what is left of that is nothing or has `least` bytes.
  Range cut(const Request& r, std::size_t least) noexcept;
  std::size_t bytes() noexcept;
  unsigned count() const noexcept { return count_.load(std::memory_order_relaxed); }  // relaxed: a hint
  Range at(unsigned i) const noexcept { return ranges_[i]; }                          // at a safepoint
  // Where they are, for who looks from outside: numbers, as Range and the atomic count hold nothing else.
  const std::uint64_t* place() const noexcept { return &ranges_[0].start; }
  const unsigned* place_of_count() const noexcept { return reinterpret_cast<const unsigned*>(&count_); }
  void clear() noexcept { count_.store(0, std::memory_order_relaxed); }  // at a safepoint

 private:
  static constexpr unsigned capacity = 64;
  os::RankedMutex<os::Rank::lab_sidelined> mutex_;
  std::atomic<unsigned> count_{0};
  Range ranges_[capacity];
  static_assert(sizeof(count_) == sizeof(unsigned) && sizeof(Range) == 2 * sizeof(std::uint64_t));
};

// The levels above the threads' buffers. Each is there if the embedder has configured it.
struct BufferLevel {
  Heap& heap;
  int number;
  Range take(const level::Locality& here, Request& r) noexcept;
};
struct CoreLevel : BufferLevel {};
struct ProcessorLevel : BufferLevel {};
struct NodeLevel : BufferLevel {};
struct SourceLevel {
  Heap& heap;
  Range take(const level::Locality& here, Request& r) noexcept;
};
using RangeLevels = level::Levels<CoreLevel, ProcessorLevel, NodeLevel, SourceLevel>;

class Heap {
 public:
  struct Level {
    terrace_lab_level_config config;
    Bounds bounds;
    Buffer* buffers;
    unsigned count;  // 0: there is no such level
    Sidelined sidelined;
    SharedCounter unused_sidelined, unused_sidelined_bytes, drained, drained_bytes;
    bool restartable() const noexcept { return config.sync == TERRACE_LAB_RESTARTABLE; }
    bool passed_over() const noexcept { return bounds.most == 0; }
  };

  /// `sysfs_root`: where the machine is described; any machine can be tested on any other.
  static std::size_t bytes(const terrace_lab_config& config, const char* sysfs_root = "/sys") noexcept;
  static Heap* make(void* memory, const terrace_lab_config& config, const char* sysfs_root = "/sys") noexcept;

  void attach(Thread& thread) noexcept;
  void detach(Thread& thread) noexcept;

  void* allocate(Thread& thread, std::size_t size) noexcept;
  /// An object from the core's buffer; by a critical section, one call deep.
  static void* allocate_core(Thread& thread, std::size_t size) noexcept {
    std::uint64_t start = 0;
    if (arch::registered(thread.area)) [[likely]] {
      if (arch::bump_armed<buffer_shift>(thread.area, thread.core_buffers, thread.active, size, start) == arch::Sequence::done)
          [[likely]]
        return pointer_to(start);
    }
    return thread.heap->allocate_core_long(thread, size);
  }
  /// An object, from `level` or the next that can.
  void* allocate_at(Thread& thread, int level, std::size_t size) noexcept;
  void* allocate_aligned(Thread& thread, std::size_t size, std::size_t alignment) noexcept;

  // Ranges: ranges.cpp, drain.cpp
  Range take_range(int level, Request& r) noexcept;
  void count_direct(std::size_t bytes) noexcept;
  enum class Install { done, busy, no_level };
  Install install_range(int level, Range range) noexcept;
  std::size_t drain() noexcept;
  std::size_t max_take(int level, std::size_t enough) const noexcept;
  std::size_t free_bytes(int level) noexcept;

  // Safepoint.
  /// False: a buffer is closed, and nothing was done.
  bool retire_all() noexcept;
  void collected(std::size_t young_bytes) noexcept;
  /// Of TLABs that the runtime keeps itself.
  void report_tlabs(unsigned threads, std::uint64_t unused, std::size_t largest) noexcept;
  void walk(terrace_lab_visitor* visit, void* argument) noexcept;

  void read_counters(terrace_lab_counters& out) noexcept;
  const Level& level(int l) const noexcept { return levels_[l]; }
  std::size_t next_size(const Thread* thread, int l) const noexcept;
  bool by_core() const noexcept { return by_core_; }
  std::size_t reserve() const noexcept { return reserve_; }
  /// Zeros where there are no sequences.
  arch::Area area() const noexcept { return has_area_ ? area_ : arch::Area{}; }
  unsigned index_here(int l) const noexcept { return index_at(l, locate()); }
  void read_attributes(terrace_lab_attributes& out) const noexcept;

 private:
  friend BufferLevel;
  friend SourceLevel;
  void open(const terrace_lab_config& config, std::byte* memory, const char* sysfs_root) noexcept;
  bool exists(int l) const noexcept { return levels_[l].config.size != 0; }
  /// Where the thread is, as far as the levels that are there ask for it.
  level::Locality locate() const noexcept;
  unsigned index_at(int l, const level::Locality& here) const noexcept;
  /// From `level` or the nearest above it.
  Range take(const level::Locality& here, int level, Request& r) noexcept;
  // A level's buffers, by compare-and-swap: cas.cpp
  void* allocate_core_long(Thread& thread, std::size_t size) noexcept;
  Range take_by_cas(const level::Locality& here, int level, const Request& r) noexcept;
  Range take_from(Buffer& b, const Request& r, std::uint64_t& seen) noexcept;
  Range refill_by_cas(const level::Locality& here, int level, Buffer& b, std::uint64_t seen, const Request& r) noexcept;
  // The core's buffer, by critical sections: restartable.cpp
  Range take_restartably(const level::Locality& here, int level, const Request& r) noexcept;
  Range refill_restartably(const level::Locality& here, int level, const Request& r, bool& again) noexcept;
  Range take_tail(Level& l, const Request& r) noexcept;
  bool close(Level& l, unsigned slot, std::uint64_t top, std::uint64_t end) noexcept;
  void sideline(Level& l, Buffer& b, Range lab) noexcept;
  bool put_aside(Level& l, Buffer& b, Range lab) noexcept;
  Install install_by_cas(int level, Range range) noexcept;
  Install install_restartably(int level, Range range) noexcept;
  bool stop(Buffer& b) const noexcept;
  bool stop_all(Level& l) noexcept;
  bool stop_by_barrier(Level& l) noexcept;
  std::size_t take_stopped(Level& l, Buffer& b) noexcept;

  /// What is asked of the level above for a buffer that is to serve `r`.
  Request for_refill(const Level& l, const Buffer& b, const Request& r) const noexcept;
  Range install(int level, Buffer& b, Range old, Range lab, const Request& r) noexcept;
  bool worth_refilling(std::size_t size, const Request& r, std::size_t room) const noexcept;
  bool near_the_end() const noexcept;
  void fill(Range tail) noexcept;
  void give_up(Counts& counts, Range tail) noexcept;
  void pad(Thread& thread, Range gap) noexcept;
  std::uint64_t aligned_start(std::uint64_t start, std::size_t alignment) const noexcept;
  /// What has not been handed out of a buffer with these words. Nothing, if it has never had a range.
  Range tail_of(std::uint64_t top, std::uint64_t end) const noexcept { return end == 0 ? Range{} : Range{top, end + reserve_}; }
  /// Whether a range goes on where a buffer ends, in the same region.
  bool joins(Range tail, Range range) const noexcept;
  void apply_limit() noexcept;
  bool refill_thread(Thread& thread, std::size_t size) noexcept;
  void retire(Thread& thread) noexcept;
  std::uint64_t retire_buffers(int level) noexcept;
  std::size_t largest_size() const noexcept;
  bool by_core_next() noexcept;
  void associate() noexcept;
  void resize_buffers(int level, std::uint64_t allocated) noexcept;

  terrace_lab_config config_;
  Level levels_[TERRACE_LAB_LEVELS];
  CoreLevel core_{{*this, TERRACE_LAB_CORE}};
  ProcessorLevel processor_{{*this, TERRACE_LAB_PROCESSOR}};
  NodeLevel node_{{*this, TERRACE_LAB_NODE}};
  SourceLevel source_{*this};
  RangeLevels above_threads_{core_, processor_, node_, source_};
  level::PerSlot<Buffer> slots_;  // the core level's buffers, where they are restartable
  level::Locator locator_;
  topology::Topology topology_;
  topology::Cores cores_;
  arch::Area area_;
  bool has_area_;
  bool by_core_;
  bool sections_end_in_calls_;  // a thread that was blocked has to arm its section anew
  std::size_t min_fill_, reserve_;
  std::uint64_t boundary_;  // 2^63: none
  std::uint64_t young_bytes_;
  std::uint64_t unused_;  // in buffers that objects come from, at the present collection
  Trials trials_;
  unsigned allocating_threads_;
  unsigned reported_threads_;  // that have allocated since the last collection, with TLABs of the runtime's own
  std::size_t reported_largest_;
  unsigned departed_allocating_;  // threads that allocated since the last collection and were detached
  std::uint64_t collections_, flips_, collections_by_core_;
  os::RankedMutex<os::Rank::lab_drain> drain_mutex_;
  os::RankedMutex<os::Rank::lab_threads> threads_mutex_;
  Thread* threads_;
  Thread departed_;                      // sums of those that were detached
  SharedCounter direct_, direct_bytes_;  // without a thread
};

}  // namespace terrace::lab
