// SPDX-License-Identifier: MIT OR Apache-2.0
// The composition root for blocks: core or thread level, depots, slabs, large blocks, and the budget over all of them.
//
// Locks are taken in the order of os/lock_order.h, by fork as by everybody else. None is held while a sequence runs but that of
// maintenance.
#pragma once

#include "base/attributes.h"
#include "check/checker.h"
#include "heap/core.h"
#include "heap/large.h"
#include "heap/slabs.h"
#include "heap/thread_slots.h"
#include "level/budget.h"
#include "level/depot.h"
#include "topology/topology.h"

namespace terrace::heap {

/// What happens rarely, per size class. The rest is counted where it happens: in slots, depots and slabs. How much was freed
/// follows: what left the slabs, and is neither back nor held by a level, is in use.
struct TransferCounters {
  SharedCounter handed_out;  // blocks that went to the program past the core level
  SharedCounter failed_refills;
  SharedCounter foreign;  // blocks that came from, or went into, another processor's or home's buffer
};

struct Options {
  Placement placement = Placement::punctuated;
  std::uint32_t random_line_per_65536 = 0;  // placement random: probability of the extra line
  std::uint64_t budget = 0;                 // 0: by the default rule
  std::uint64_t decay_ms = 1000;
};

class Heap {
 public:
  /// Opens the heap at the first call from wherever. False: the system gives no memory at all.
  bool ready() noexcept;

  void* allocate(std::size_t size) noexcept;
  /// As allocate(), after the fast path found its word empty.
  void* allocate_after_miss(SizeClass c) noexcept;
  /// Of more than the largest class, or aligned as no class is; the heap is open and nothing is checked.
  void* allocate_large(std::size_t size, std::size_t align, bool zeroed = false) noexcept;
  void* allocate_zeroed(std::size_t size) noexcept;
  /// Sets errno when it fails.
  void* allocate_aligned(std::size_t size, std::size_t align) noexcept;
  void* reallocate(void* p, std::size_t size) noexcept;
  void free(void* p) noexcept;
  /// 0 for null; ends the process when p is no block.
  TERRACE_INLINE std::size_t usable_size(const void* p, const char* function) noexcept {
    // Nothing is in the window before the heap is open.
    if (spans_.window().contains(p) && !checker_.on()) [[likely]] {
      const span::GranuleIndex i = spans_.window().index_of(p);
      const HomeClass h{spans_.window().owners_byte(i)};
      if (index(h) != 0) {
        if (slabs_.is_block(p, i, h)) [[likely]]
          return class_size(class_of(h));
      } else if (const std::size_t size = large_.usable_size(p); size != 0) {
        return size;
      }
    }
    return usable_size_slow(p, function);
  }

  /// As free(), by a form of it that knows more of the block; looked at with TERRACE_CHECK only.
  void free(void* p, const check::Claim& claim) noexcept;

  /// Drains all levels and gives all free memory back. Whether anything was given back.
  bool trim() noexcept;

  /// The invariant that does not hold, of any level, in words; null when all do. For tests, while no other thread is inside.
  const char* check_invariants() noexcept;

  // fork: everything is locked, then unlocked in the parent, made usable in the child.
  void before_fork() noexcept;
  void after_fork_in_parent() noexcept;
  void after_fork_in_child() noexcept;

  // Around a vfork child, which runs on its parent's thread-local data and rseq area without being registered for rseq.
  // enter_vfork() gives what leave_vfork() wants back; calls nest.
  unsigned enter_vfork() noexcept;
  void leave_vfork(unsigned before) noexcept;

  // What introspect/ reads.
  const Options& options() const noexcept { return options_; }
  check::Checker& checker() noexcept { return checker_; }
  const percpu::Ladder& ladder() const noexcept { return percpu::ladder(); }
  Core& core() noexcept { return core_; }
  ThreadSlots& thread_slots() noexcept { return thread_slots_; }
  level::Depots& depots() noexcept { return depots_; }
  const Magazines& magazines() const noexcept { return magazines_; }
  const Slabs& slabs() const noexcept { return slabs_; }
  const Large& large() const noexcept { return large_; }
  const span::Spans& spans() const noexcept { return spans_; }
  std::uint64_t large_granted() const noexcept { return large_granted_.read(); }
  std::uint64_t budget() const noexcept { return budget_.limit() + depot_budget_.limit(); }
  const TransferCounters& transfers(SizeClass c) const noexcept { return transfers_[index(c)]; }

 private:
  // Without TERRACE_CHECK's zones: what the levels below serve.
  void* allocate_plain(std::size_t size, std::size_t align) noexcept;
  void free_plain(void* p) noexcept;
  __attribute__((cold, noinline)) void* allocate_aligned_slow(std::size_t size, std::size_t align) noexcept;
  std::size_t usable_size_slow(const void* p, const char* function) noexcept;

  bool open() noexcept;
  bool open_core() noexcept;
  void publish_fast_path() noexcept;
  // The caller holds switch_, or is alone.
  void enable_fast_path() noexcept;
  static void disable_fast_path() noexcept;
  void follow_frontier() noexcept;
  void update_limits() noexcept;

  // hardened.cpp: blocks hold zeroes while they are free
  void* small_block(SizeClass c) noexcept {
    void* const block = allocate_small(c);
    if constexpr (hardened) check_cleared(block, c);
    return block;
  }
  static void choose_secret() noexcept;
  static bool is_freed(const void* block) noexcept;
  static void check_cleared(void* block, SizeClass c) noexcept;
  static void check_cleared(const std::uint64_t* blocks, unsigned n) noexcept;
  void clear_freed(void* p, HomeClass h) noexcept;

  // transfer.cpp: magazines between the levels
  void* allocate_small(SizeClass c) noexcept;
  HomeClass own_word(const level::Slot& slot, SizeClass c) const noexcept;
  void load(level::Slot& slot, HomeClass word, level::Magazine m) noexcept;
  void keep_empty(level::Slot& slot, HomeClass h, level::Magazine m) noexcept;
  void free_small(void* p, HomeClass h) noexcept;
  void* refill(level::Slot& slot, SizeClass c) noexcept;
  void* refill_from_above(level::Slot& slot, SizeClass c, level::Magazine one, level::Magazine other) noexcept;
  level::Magazine cut_into(level::Magazine m, HomeClass h, unsigned want) noexcept;
  void* allocate_past_core(SizeClass c) noexcept;
  void free_large(void* p) noexcept;
  void free_past_core(void* p) noexcept;
  void spill(level::Slot& slot, HomeClass h, void* p) noexcept;
  void store(level::Magazine m) noexcept;
  void unload(level::Magazine& m) noexcept;
  void empty(level::Magazine m) noexcept;
  level::Magazine fetch(HomeClass h) noexcept;
  level::Magazine fetch_within_cap(level::Slot& slot, HomeClass h, unsigned cap) noexcept;
  void* take_one(HomeClass h, bool may_grow) noexcept;
  void* steal_block(SizeClass c) noexcept;
  void* last_resort(SizeClass c, HomeClass h) noexcept;
  unsigned processor() const noexcept;
  level::Place place() noexcept;
  /// Of a magazine that holds blocks: the word it lies in may be that of home 0.
  HomeClass home_of(level::Magazine m) const noexcept {
    return home_class_of(reinterpret_cast<void*>(*m.begin()));  // NOLINT(performance-no-int-to-ptr): a round is a pointer
  }
  /// Requires a pointer into the window. Class 0: not in a slab of blocks.
  HomeClass home_class_of(const void* p) const noexcept {
    const HomeClass h{spans_.window().owners_byte(spans_.window().index_of(p))};
    return index(h) < home_class_count ? h : HomeClass{};
  }

  // grants.cpp: who may hold how much
  unsigned grow_cap(level::Slot& slot, HomeClass h) noexcept;
  void shrink_cap(level::Slot& slot, HomeClass h) noexcept;
  void reclaim_caps(level::Slot& slot, std::uint64_t bytes, unsigned steps) noexcept;
  void empty_words(level::Slot& slot, HomeClass h) noexcept;
  bool reserve_in_depots(HomeClass h, unsigned blocks) noexcept;
  void reclaim_depots() noexcept;
  bool give_up_oldest(level::Shard& shard, std::size_t key) noexcept;

  // large_cache.cpp: large blocks that slots keep
  void* take_kept(std::size_t size, bool zeroed) noexcept;
  bool keep(void* p) noexcept;
  bool grant(level::Slot& slot, unsigned word) noexcept;
  void give_up_kept(ChainWord block) noexcept;
  void release_large_grants(level::Slot& slot) noexcept;

  // maintenance.cpp: decay, draining, trim
  /// What is due, if anything is. The time, in coarse milliseconds.
  std::uint64_t tick() noexcept;
  void reset_locks_in_child() noexcept;
  void repair_in_child() noexcept;
  void drain_slot(level::Slot& slot) noexcept;
  void drain_all() noexcept;
  bool make_room(std::size_t bytes) noexcept;
  bool levels_are_empty() noexcept;
  void drain_slots() noexcept;
  void drain_depots() noexcept;
  void look_at_slot(level::Slot& slot, bool all) noexcept;
  bool take_words(level::Slot& slot, std::span<ChainWord> words, ChainWord* held) noexcept;
  void drain_large_words(level::Slot& slot) noexcept;
  void go_on_round() noexcept;
  bool age_slots() noexcept;
  bool age_depots() noexcept;
  void drain_own_slot(bool all) noexcept;
  bool may_stop_slots() const noexcept;
  void release_caps(level::Slot& slot) noexcept;
  std::uint64_t purged_bytes() const noexcept;
  static void drain_thread_slot(level::Slot& slot) noexcept;

  // surplus.cpp: the bound on all that is resident beyond what is live
  std::uint64_t surplus() const noexcept;
  std::uint64_t levels_granted() const noexcept {
    return budget_.granted() + depot_budget_.granted() + large_granted_.read() + magazines_.bytes();
  }
  std::uint64_t surplus_share() const noexcept;
  std::uint64_t surplus_bound() noexcept { return surplus_share() + spans_.regretted_beyond_bound(); }
  /// Every path that may have raised the surplus or lowered the bound ends with this, and holds no lock.
  void keep_bound() noexcept {
    if (surplus() > surplus_bound() + tolerated_.load(std::memory_order_relaxed)) [[unlikely]]
      shed();
  }
  void shed() noexcept;
  void shed_down_to(std::uint64_t target) noexcept;

  // check.cpp
  const char* check_slot(level::Slot& slot, std::uint64_t& caps) noexcept;
  const char* check_depots() noexcept;

  bool with_random_line() noexcept;
  std::size_t small_size(const void* p) const noexcept;

  std::atomic<bool> ready_{false};
  os::RankedMutex<os::Rank::opening> open_mutex_;
  os::RankedMutex<os::Rank::maintenance> maintenance_;
  Options options_;
  check::Checker checker_;
  span::Spans spans_;
  Slabs slabs_;
  const AlignedClasses* aligned_classes_ = nullptr;
  Large large_;
  level::Depots depots_;
  Magazines magazines_;
  SharedCounter large_granted_;          // bytes of large blocks that slots may keep
  level::Budget budget_, depot_budget_;  // what the slots' caps, and what the depots may hold
  ThreadSlots thread_slots_;
  Core core_;
  topology::Topology topology_;
  std::ptrdiff_t cpu_id_offset_ = 0;
  bool fast_path_is_seen_ = false;  // its fields, by every thread that may see a limit
  TransferCounters transfers_[max_size_classes];
  std::atomic<std::uint64_t> last_tick_{0};
  os::RankedMutex<os::Rank::switching> switch_;  // guards the limits of fast_path and the number below
  std::uint32_t vfork_children_ = 0;
  // Beyond the bound, in bytes: what could not be given back at the last try. relaxed: a stale one costs one more try.
  std::atomic<std::uint64_t> tolerated_{0};
  // Slabs::returns() before the slabs were drained last. relaxed: an old one costs one more drain.
  std::atomic<std::uint64_t> drained_at_{~std::uint64_t{0}};
  SharedCounter depot_refusals_;
  std::uint32_t depot_hand_ = 0;  // guarded by maintenance_, as the places that a round has reached:
  std::uint32_t round_slot_ = 0, round_stacks_ = 0;
  std::atomic<bool> round_unfinished_{false};
  std::atomic<std::uint64_t> random_state_{0x9e3779b97f4a7c15U};
};

extern Heap heap __attribute__((visibility("hidden")));

/// The options as the environment has them (heap/options.cpp); bad values are refused with a line on standard error. `lookup`
/// tells the value of a variable, null when there is none.
using Lookup = const char* (*)(const char* name) noexcept;
Options read_options(Lookup lookup) noexcept;

}  // namespace terrace::heap
