// SPDX-License-Identifier: MIT OR Apache-2.0
#include "heap/heap.h"

#include "base/hardened.h"
#include "base/report.h"
#include "heap/fast_path/fast_path.h"
#include "heap/slabs/cleared.h"
#include "os/environment.h"
#include "os/memory.h"

#include <cerrno>
#include <cstring>

namespace terrace::heap {

constinit Heap heap;

namespace {

constexpr Heap::Redirect to_checker{
    .allocate = [](std::size_t size, std::size_t align) noexcept { return heap.checker().allocate(size, align); },
    .free = [](void* p, const check::Claim& claim) noexcept { heap.checker().free(p, claim); },
    .reallocate =
        [](void* p, std::size_t size) noexcept {
          void* const fresh = heap.checker().reallocate(p, size);
          if (fresh == nullptr) errno = ENOMEM;
          return fresh;
        },
    .usable_size = [](const void* p, const char* function) noexcept { return heap.checker().usable_size(p, function); },
};

constexpr std::size_t max_random_line_size = ~std::size_t{0} / 2;  // beyond, the sum might wrap
constexpr std::size_t worth_knowing_zero = 32 * kib;               // calloc: beyond, a fresh span saves clearing
constexpr std::size_t rest_worth_purging = 16 * kib;               // realloc: behind what a block was shortened to

}  // namespace

bool Heap::ready() noexcept {
  // [H1] acquire, pairs with the release below: everything that open() wrote is seen.
  if (ready_.load(std::memory_order_acquire)) return true;
  const os::LockGuard guard(open_mutex_);
  if (ready_.load(std::memory_order_relaxed)) return true;
  if (!open()) return false;
  fast_path_switch_.on();                         // before anybody can call vfork, which turns it off
  ready_.store(true, std::memory_order_release);  // [H1]
  return true;
}

bool Heap::open() noexcept {
  options_ = read_options(os::environment);
  if (options_.profile != 0) {
    profile::profiler.set_copies(options_.profile_stacks);
    profile::profiler.set_period(options_.profile);
  }
  if constexpr (hardened) choose_secret();
  if (!spans_.open()) return false;
  spans_.set_decay(options_.decay_ms);
  slabs_.open(spans_, shapes_for(options_.placement));
  aligned_classes_ = &aligned_classes_for(options_.placement);
  large_.open(spans_, options_.placement);
  checker_.open(check::read_options(),
                {.allocate = [](std::size_t size, std::size_t align) noexcept { return heap.allocate_plain(size, align); },
                 .release = [](void* p) noexcept { heap.free_plain(p); },
                 .is_free_again = [](const void* p) noexcept { return heap.is_free_again(p); }});
  const auto drain = [](level::Slot& slot) noexcept { heap.maintenance_.drain_slot(slot); };
  if (!levels_.open(drain, spans_.window())) return false;
  maintenance_.open(options_.decay_ms, options_.budget);
  maintenance_.update_limits();
  if (checker_.on()) redirect_ = &to_checker;
  if (core().has_sequences() && redirect_ == nullptr) {
    fast_path_switch_.publish({.window = &spans_.window(),
                               .slots = core().bytes(),
                               .sizes = options_.placement != Placement::random,
                               .sublines = core().homes_are_slots()},
                              percpu::ladder().area);
  }
  return true;
}

void Heap::redirect(const Redirect& redirect) noexcept {
  if (redirect_ != nullptr) return;  // TERRACE_CHECK was asked for, which looks at more
  redirect_ = &redirect;
  fast_path_switch_.off();
}

bool Heap::is_plain(const void* p) noexcept {
  if (!spans_.window().contains(p)) return false;
  const HomeClass h = slabs_.home_class_of(p);
  return index(h) != 0 ? slabs_.is_block(p) : large_.is_block(p);
}

std::size_t Heap::plain_size(const void* p) noexcept {
  const HomeClass h = slabs_.home_class_of(p);
  return index(h) != 0 ? class_size(class_of(h)) : large_.usable_size(p);
}

bool Heap::with_random_line() noexcept {
  // relaxed, and lost updates do no harm: any sequence of numbers will do.
  std::uint64_t x = random_state_.load(std::memory_order_relaxed);
  x ^= x << 13;
  x ^= x >> 7;
  x ^= x << 17;
  random_state_.store(x, std::memory_order_relaxed);
  return (x >> 32) % 65536 < options_.random_line_per_65536;
}

void* Heap::allocate(std::size_t size) noexcept {
  if (!ready()) return nullptr;
  if (os::companions.load(std::memory_order_relaxed) != 0) [[unlikely]]  // relaxed: see os::thread_state()
    fast_path_switch_.look_for_companions();
  if (redirect_ != nullptr) [[unlikely]]
    return redirect_->allocate(size, SizeRule::quantum);
  return allocate_plain(size, SizeRule::quantum);
}

void* Heap::allocate_plain(std::size_t size, std::size_t align) noexcept {
  if (options_.placement == Placement::random && size >= cache_line && size <= max_random_line_size && with_random_line())
    size += cache_line;
  if (align > SizeRule::quantum && AlignedClasses::serve(size, align))
    return small_block((*aligned_classes_)(size, align), size, align);
  if (align <= SizeRule::quantum && size <= SizeRule::largest) return small_block(class_for(size), size, align);
  return allocate_large(size, align);
}

// Memory is short, and no slab of the class is to be had: it would have several blocks. One block may fit.
void* Heap::allocate_alone(SizeClass c, std::size_t size, std::size_t align) noexcept {
  if (slabs_.slab_bytes(c) <= span::granule_size) return nullptr;
  return large_.allocate(size, align, false, levels_.node());
}

// As small_block(), while the heap profiler runs. The counter may be at 0 since the fast path has found it there; a pop would
// count on.
void* Heap::small_block_sampling(SizeClass c, std::size_t size, std::size_t align) noexcept {
  void* block = sampling_.is_due(c) ? nullptr : levels_.at_hand(c);
  if (block == nullptr) {
    if (void* const sampled = sample(c, size, align)) return sampled;
    block = levels_.allocate_after_miss(c);
  }
  if (block == nullptr) return allocate_alone(c, size, align);
  if constexpr (hardened) check_cleared(block, c);
  return block;
}

void* Heap::sample(SizeClass c, std::size_t size, std::size_t align) noexcept {
  void* const p = sampling_.allocate(c, size, align);
  if (p != nullptr) maintenance_.keep_limit();
  return p;
}

void* Heap::allocate_large(std::size_t size, std::size_t align, bool zeroed) noexcept {
  void* p = align <= cache_line ? large_slots_.take(size, zeroed) : nullptr;
  if (p == nullptr) p = allocate_span(size, align, zeroed);
  if (Sampling::on() && p != nullptr) [[unlikely]]
    sampling_.look_at(p, size);
  return p;
}

// Not part of allocate_large(), so that a block that was kept costs no registers saved.
void* Heap::allocate_span(std::size_t size, std::size_t align, bool zeroed) noexcept {
  const unsigned node = levels_.node();
  void* const p = large_.allocate(size, align, zeroed, node);
  if (p != nullptr) maintenance_.keep_limit();
  if (p != nullptr || !maintenance_.make_room(size)) return p;
  return large_.allocate(size, align, zeroed, node);
}

void Heap::free_large(void* p) noexcept {
  sampling_.drop(p);
  const LargeSlots::Kept kept = large_slots_.keep(p);
  if (kept == LargeSlots::Kept::yes) return;
  if (kept == LargeSlots::Kept::no) large_.free(p, os::coarse_milliseconds());
  maintenance_.tick();
  maintenance_.keep_bound();
}

void* Heap::allocate_zeroed(std::size_t size) noexcept {
  if (size > worth_knowing_zero) {
    if (!ready()) return nullptr;
    if (redirect_ == nullptr) return insist(size, [&] { return allocate_large(size, SizeRule::quantum, true); });
  }
  void* const p = heap::allocate(size);
  if (p != nullptr) std::memset(p, 0, size);
  return p;
}

void* Heap::allocate_aligned(std::size_t size, std::size_t align) noexcept {
  if (align <= SizeRule::quantum) return heap::allocate(size);
  if (fast_path.size_limit != 0 && AlignedClasses::serve(size, align)) [[likely]] {
    limit_first();
    if (void* const block = allocate_from(home_class((*aligned_classes_)(size, align), 0))) return block;
  }
  return allocate_aligned_slow(size, align);
}

// errno is set here: see allocate_slow().
void* Heap::allocate_aligned_slow(std::size_t size, std::size_t align) noexcept {
  const profile::Entered entered(__builtin_frame_address(0));
  void* const p = insist(size, [&]() -> void* {
    if (!ready()) return nullptr;
    return redirect_ != nullptr ? redirect_->allocate(size, align) : allocate_plain(size, align);
  });
  if (p == nullptr) errno = ENOMEM;
  return p;
}

void Heap::free_redirected(void* p) noexcept { redirect_->free(p, {}); }

// Without a claim on the stack, where nobody looks at one.
void Heap::free(void* p) noexcept {
  if (p == nullptr) return;
  if (!ready()) report_invalid_pointer("free", p);
  if (redirect_ != nullptr) [[unlikely]]
    return free_redirected(p);
  free_plain(p, "free");
}

void Heap::free(void* p, const check::Claim& claim) noexcept {
  if (p == nullptr) return;
  if (!ready()) report_invalid_pointer(claim.function, p);
  if (redirect_ != nullptr) [[unlikely]]
    return redirect_->free(p, claim);
  free_plain(p, claim.function);
}

void Heap::free_plain(void* p, const char* function) noexcept {
  if (!spans_.window().contains(p)) report_invalid_pointer(function, p);
  const HomeClass h = slabs_.home_class_of(p);
  if (index(h) != 0) {
    if (address_of(p) % SizeRule::quantum != 0) report_invalid_pointer(function, p);
    if constexpr (hardened) clear_freed(p, h);
    levels_.free(p, h);
  } else if (large_.is_block(p) && index(sampling_.object_class_of(p)) == 0) {
    free_large(p);
  } else if (is_free_again(p)) {
    report_double_free(function, p);
  } else {
    report_invalid_pointer(function, p);
  }
}

bool Heap::is_sampled_object(SizeClass c, const void* p) noexcept {
  if (!spans_.window().contains(p) || index(slabs_.home_class_of(p)) != 0) return false;
  return large_.is_block(p) && sampling_.object_class_of(p) == c;
}

bool Heap::trim() noexcept {
  if (!ready()) return false;
  if (checker_.on()) checker_.sweep("malloc_trim");
  return maintenance_.trim();
}

void Heap::check_cleared(void* block, SizeClass c) noexcept {
  if (block == nullptr) return;
  expect_cleared("malloc", address_of(block), class_size(c));
  take_key(block);
}

void Heap::clear_freed(void* p, HomeClass h) noexcept {
  if (!slabs_.is_block(p)) report_invalid_pointer("free", p);
  if (is_freed(p)) report_double_free("free", p);
  clear(p, class_size(class_of(h)));
}

std::size_t Heap::usable_size_slow(const void* p, const char* function) noexcept {
  if (p == nullptr) return 0;
  if (!ready() || redirect_ == nullptr) report_invalid_pointer(function, p);
  return redirect_->usable_size(p, function);
}

namespace {

// Who grows by a little will do so again.
std::size_t room_to_grow(std::size_t size, std::size_t have) noexcept {
  return size <= have || size - have > have / 8 ? size : with_room_to_grow(size);
}

// Of a block of `have` bytes for what was larger before. Whoever had it last may have left pages that it does not need.
void give_end_back(void* block, std::size_t have, std::size_t size) noexcept {
  const std::uintptr_t page = os::page_size(), end = address_of(block) + have;
  const std::uintptr_t from = round_up(address_of(block) + size, page);
  if (end >= from + rest_worth_purging)
    os::purge(static_cast<std::byte*>(block) + (from - address_of(block)), end - end % page - from);
}

}  // namespace

// The class of the small block p; 0 when it is none. A look as close as free()'s: whether a block starts there is seen later.
SizeClass Heap::small_class(const void* p) const noexcept {
  if (!ready_.load(std::memory_order_acquire) || !spans_.window().contains(p)) return {};  // [H1]
  const HomeClass h = slabs_.home_class_of(p);
  if (index(h) == 0 || address_of(p) % SizeRule::quantum != 0) return {};
  if constexpr (hardened) {
    if (!slabs_.is_block(p)) report_invalid_pointer("realloc", p);
    if (is_freed(p)) report_double_free("realloc", p);
  }
  return class_of(h);
}

void* Heap::reallocate(void* p, std::size_t size) noexcept {
  if (redirect_ != nullptr) [[unlikely]]
    return redirect_->reallocate(p, size);
  const SizeClass c = small_class(p);
  std::size_t have = class_size(c);
  if (have == 0) {
    have = usable_size(p, "realloc");
    if (index(sampling_.object_class_of(p)) != 0) report_invalid_pointer("realloc", p);
    if (sampling_.stays(p, size)) return p;
    if (size > SizeRule::largest) {
      const std::uint32_t sample = large_.sample_of(p);
      const bool resized = large_.resize(p, size);
      void* const moved = resized ? p : large_.move(p, size);
      if (moved != nullptr) {
        sampling_.reallocated(moved, size, sample);
        maintenance_.keep_bound();
        return moved;
      }
    }
  } else if (size <= have && size > too_small_for(c)) {
    return p;
  } else if (!slabs_.is_block(p)) {
    report_invalid_pointer("realloc", p);
  }
  const std::size_t room = size <= SizeRule::largest ? room_to_grow(size, have) : size;
  const int error = errno;
  void* fresh = heap::allocate(room);
  if (fresh == nullptr) {
    if (room != size) fresh = heap::allocate(size);
    if (fresh == nullptr && size > have) return nullptr;
    errno = error;  // what failed was more than what was asked for
    if (fresh == nullptr) return p;
  }
  std::memcpy(fresh, p, min_of(have, size));
  if (size < have) {
    give_end_back(fresh, plain_size(fresh), size);
    if (have - size >= os::smallest_page) spans_.forget(have - size);
  }
  heap::free(p);
  return fresh;
}

namespace {

// A limit that is not 0 says that the heap is open and nothing is checked or placed at random: what misses the fast path is a
// class whose word is empty, or a large block.
void* allocate_beside_fast_path(std::size_t size) noexcept {
  const std::size_t limit = fast_path.size_limit;
  if (limit == 0 || size == 0) return heap.allocate(size);
  return size <= limit ? heap.allocate_after_miss(size) : heap.allocate_large(size, SizeRule::quantum);
}

}  // namespace

// errno is set here, on the cold side, so that malloc itself can end in a jump.
void* allocate_slow(std::size_t size) noexcept {
  const profile::Entered entered(__builtin_frame_address(0));
  void* const p = heap.insist(size, [=] { return allocate_beside_fast_path(size); });
  if (p == nullptr) errno = ENOMEM;
  return p;
}
void free_slow(void* p) noexcept { heap.free(p); }
void free_sized_slow(void* p, std::size_t size) noexcept {
  heap.free(p, {.function = "free_sized", .size = size, .has_size = true});
}
void free_aligned_sized_slow(void* p, std::size_t size, std::size_t align) noexcept {
  heap.free(p, {.function = "free_aligned_sized", .size = size, .has_size = true, .align = align});
}
void delete_sized_slow(void* p, std::size_t size) noexcept {
  heap.free(p, {.function = "operator delete", .size = size, .has_size = true});
}
void delete_aligned_slow(void* p, std::size_t align) noexcept { heap.free(p, {.function = "operator delete", .align = align}); }
void delete_aligned_sized_slow(void* p, std::size_t size, std::size_t align) noexcept {
  heap.free(p, {.function = "operator delete", .size = size, .has_size = true, .align = align});
}

}  // namespace terrace::heap
