// SPDX-License-Identifier: MIT OR Apache-2.0
// The composition root for blocks, and what a program asks of them. Three parts make a heap of levels:
//
//   Heap          what malloc, free and the others come down to, on top of the rest
//   BlockLevels   blocks of the size classes between program, slots, depots and slabs
//   Maintenance   what is given back, and when
//
// All paths, fork included, take locks in the order of os/lock_order.h. Only the lock of maintenance may be held while a
// sequence runs.
#pragma once

#include "base/attributes.h"
#include "base/described.h"
#include "check/checker.h"
#include "heap/across_fork.h"
#include "heap/levels/block_levels.h"
#include "heap/levels/large_slots.h"
#include "heap/options.h"
#include "heap/sampling.h"
#include "heap/upkeep/maintenance.h"

namespace terrace::heap {

class Heap {
 public:
  /// Opens the heap at the first call. False: the system has no memory.
  bool ready() noexcept;

  void* allocate(std::size_t size) noexcept;
  /// As allocate(), after the fast path found its word empty.
  void* allocate_after_miss(std::size_t size) noexcept {
    const SizeClass c = class_for(size);
    if (Sampling::on()) [[unlikely]] {
      if (void* const sampled = sample(c, size, SizeRule::quantum)) return sampled;
    }
    void* const block = levels_.allocate_after_miss(c);
    return block != nullptr ? block : allocate_alone(c, size, SizeRule::quantum);
  }
  /// For sizes above the largest class, or alignments that no class has. Requires an open heap; without checks.
  void* allocate_large(std::size_t size, std::size_t align, bool zeroed = false) noexcept;
  void* allocate_zeroed(std::size_t size) noexcept;
  /// Sets errno when it fails.
  void* allocate_aligned(std::size_t size, std::size_t align) noexcept;
  /// The same.
  void* reallocate(void* p, std::size_t size) noexcept;
  void free(void* p) noexcept;
  /// 0 for null; ends the process when p is no block.
  TERRACE_INLINE std::size_t usable_size(const void* p, const char* function) noexcept {
    // Nothing is in the window before the heap is open.
    if (spans_.window().contains(p) && redirect_ == nullptr) [[likely]] {
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

  /// As free(), with a size or an alignment, which only TERRACE_CHECK compares.
  void free(void* p, const check::Claim& claim) noexcept;

  /// Drains all levels and gives all free memory back. True: some was given back.
  bool trim() noexcept;

  /// A round over unused prepared objects. Holds no lock while it calls their owners.
  void age_prepared_objects() noexcept { maintenance_.draining().age_prepared(); }
  /// As Draining::drain_objects().
  void drain_objects(HomeClass h) noexcept { maintenance_.draining().drain_objects(h); }
  /// As Maintenance::remove_objects().
  bool remove_objects(HomeClass h) noexcept { return maintenance_.remove_objects(h); }

  /// The invariant that does not hold, of any level, in words; null when all do. For tests, while no other thread is inside.
  const char* check_invariants() noexcept;

  /// Replaces malloc and its family, by TERRACE_CHECK or a layer above. The replacement itself calls allocate_plain() and
  /// free_plain().
  struct Redirect {
    void* (*allocate)(std::size_t size, std::size_t align) noexcept;
    void (*free)(void* p, const check::Claim& claim) noexcept;
    void* (*reallocate)(void* p, std::size_t size) noexcept;  // sets errno
    std::size_t (*usable_size)(const void* p, const char* function) noexcept;
  };
  /// Permanent; call before the process has a second thread.
  void redirect(const Redirect& redirect) noexcept;
  /// Memory by size that is not malloc's comes from a layer above. Permanent; call before the process has a second thread.
  void redirect_sizes() noexcept { fast_path_switch_.below_page_off(); }
  bool redirected() const noexcept { return redirect_ != nullptr; }
  // As malloc and free without a redirection, and without TERRACE_CHECK's zones: what the levels below serve.
  void* allocate_plain(std::size_t size, std::size_t align) noexcept;
  void free_plain(void* p, const char* function = "free") noexcept;
  /// Whether a block of malloc's, small or large, begins at p; and its size then.
  bool is_plain(const void* p) noexcept;
  std::size_t plain_size(const void* p) noexcept;
  /// Frees a large block but keeps it whole for the caller, which has set it aside. False: impossible; the block is unchanged.
  /// Requires is_plain(p), of more than the largest class.
  bool set_aside(void* p) noexcept {
    LargeRecord* const record = large_.keepable(p);
    if (record == nullptr) return false;
    sampling_.drop(p);
    Large::set_kept(*record);
    return true;
  }
  /// A block of its own for an allocation of the class, which found none at hand, if it is sampled and there is memory; else
  /// null.
  __attribute__((cold, noinline)) void* sample(SizeClass c, std::size_t size, std::size_t align) noexcept;
  /// Whether sample() gave p out as an object of that class.
  bool is_sampled_object(SizeClass c, const void* p) noexcept;
  /// Requires is_sampled_object().
  void free_sampled(void* p) noexcept { free_large(p); }
  bool is_set_aside(const void* p) noexcept { return large_.is_kept_block(p); }
  /// Whether p lies in memory that a slab or a large block had and nobody has now. For reports of misuse.
  bool is_free_again(const void* p) noexcept {
    return spans_.window().contains(p) && (large_.is_kept_block(p) || spans_.is_free_again(spans_.window().index_of(p)));
  }
  void take_back(void* p) noexcept {
    large_.set_in_place(p);
    if (Sampling::on()) [[unlikely]]
      sampling_.look_at(p, large_.requested(p));
  }
  /// Of a block or an object.
  const void* slab_start(const void* p) const noexcept {
    const span::Window& w = spans_.window();
    return w.address(w.record(w.index_of(p)).first);
  }

  /// Bytes that all slots together may hold; 0: by the default rule.
  void set_budget(std::uint64_t bytes) noexcept {
    options_.budget = bytes;
    maintenance_.set_budget(bytes);
  }

  /// Sets a function that is called, without a lock, before an allocation of the program fails: whether another try makes
  /// sense. Call once, before there are threads.
  void set_last_resort(bool (*ask)() noexcept) noexcept { last_resort_ = ask; }
  /// attempt(), and once more if the last resort says so; the watcher of the profiler is told of what fails for good. A
  /// replacement of malloc asks the last resort itself.
  template <class Attempt>
  void* insist(std::size_t size, Attempt attempt) noexcept {
    if (void* const p = attempt()) return p;
    if (last_resort_ != nullptr && (redirect_ == nullptr || checker_.on()) && last_resort_()) {
      if (void* const p = attempt()) return p;
    }
    profile::profiler.tell(size);
    return nullptr;
  }

  AcrossFork& across_fork() noexcept { return across_fork_; }
  FastPathSwitch::Entered enter_vfork() noexcept { return fast_path_switch_.enter_vfork(ready()); }
  void leave_vfork(std::uint64_t entered) noexcept { fast_path_switch_.leave_vfork(entered); }
  /// Null: no memory for it, or for the heap.
  os::Companion* add_companion(std::uintptr_t thread_pointer) noexcept {
    return ready() ? fast_path_switch_.add_companion(thread_pointer) : nullptr;
  }

  // What introspect/ reads.
  const Options& options() const noexcept { return options_; }
  check::Checker& checker() noexcept { return checker_; }
  const percpu::Ladder& ladder() const noexcept { return percpu::ladder(); }
  BlockLevels& levels() noexcept { return levels_; }
  CoreLevel& core() noexcept { return levels_.core(); }
  level::Depots& depots() noexcept { return levels_.processors().depots(); }
  const Magazines& magazines() noexcept { return levels_.magazines(); }
  const Slabs& slabs() const noexcept { return slabs_; }
  const Large& large() const noexcept { return large_; }
  const span::Spans& spans() const noexcept { return spans_; }
  std::uint64_t large_granted() const noexcept { return large_slots_.granted(); }
  std::uint64_t budget() noexcept { return maintenance_.levels_limit(); }

 private:
  friend struct introspect::Layout;
  friend class AcrossFork;
  __attribute__((cold, noinline)) void* allocate_aligned_slow(std::size_t size, std::size_t align) noexcept;
  std::size_t usable_size_slow(const void* p, const char* function) noexcept;

  bool open() noexcept;

  // Hardened build: cleared.h
  void* small_block(SizeClass c, std::size_t size, std::size_t align) noexcept {
    if (Sampling::on()) [[unlikely]]
      return small_block_sampling(c, size, align);
    void* block = levels_.at_hand(c);
    if (block == nullptr) block = levels_.allocate_after_miss(c);
    if (block == nullptr) return allocate_alone(c, size, align);
    if constexpr (hardened) check_cleared(block, c);
    return block;
  }
  __attribute__((cold, noinline)) void* small_block_sampling(SizeClass c, std::size_t size, std::size_t align) noexcept;
  __attribute__((cold, noinline)) void* allocate_alone(SizeClass c, std::size_t size, std::size_t align) noexcept;
  static void check_cleared(void* block, SizeClass c) noexcept;
  void clear_freed(void* p, HomeClass h) noexcept;

  __attribute__((noinline)) void* allocate_span(std::size_t size, std::size_t align, bool zeroed) noexcept;
  void free_large(void* p) noexcept;
  __attribute__((cold, noinline)) void free_redirected(void* p) noexcept;
  bool with_random_line() noexcept;
  SizeClass small_class(const void* p) const noexcept;

  std::atomic<bool> ready_{false};
  os::RankedMutex<os::Rank::opening> open_mutex_;
  const Redirect* redirect_ = nullptr;
  bool (*last_resort_)() noexcept = nullptr;
  Options options_;
  span::Spans spans_;
  Slabs slabs_;
  const AlignedClasses* aligned_classes_ = nullptr;
  Large large_;
  FastPathSwitch fast_path_switch_;
  BlockLevels levels_{slabs_, fast_path_switch_, maintenance_};
  check::Checker checker_;
  Maintenance maintenance_{spans_, slabs_, large_, levels_, large_slots_};
  LargeSlots large_slots_{levels_.core(), large_, maintenance_};
  Sampling sampling_{levels_, large_};
  AcrossFork across_fork_{*this};
  std::atomic<std::uint64_t> random_state_{0x9e3779b97f4a7c15U};
};

extern Heap heap __attribute__((visibility("hidden")));

}  // namespace terrace::heap
