// SPDX-License-Identifier: MIT OR Apache-2.0
#include "umem/cache.h"

#include "base/format.h"
#include "base/report.h"
#include "heap/heap.h"
#include "os/io.h"
#include "os/memory.h"
#include "os/threads.h"
#include "os/yield.h"
#include "umem/debug.h"
#include "umem/flags.h"
#include "umem/handles.h"
#include "umem/log.h"
#include "umem/messages.h"
#include "umem/options.h"
#include "umem/update.h"

#include <cerrno>
#include <cstring>
#include <new>

namespace terrace::umem {

using heap::ObjectRule, heap::heap;

constinit CacheList caches;

namespace {

constexpr std::size_t smallest_alignment = 8, usual_alignment = 16;

void undo(void* owner, void* object) noexcept {
  const Cache& c = *static_cast<Cache*>(owner);
  c.destruct(object, c.private_data);
}

// 0: as umem_cache_create() has it. Pieces of an arena that nobody touches may be numbers that are no addresses.
std::size_t alignment_of(const Wanted& w) noexcept {
  if (w.align == 0) return w.size > smallest_alignment ? usual_alignment : smallest_alignment;
  if (w.source != nullptr && (w.flags & UMC_NOTOUCH) != 0) return w.align;
  return max_of(w.align, smallest_alignment);
}

int error_in(const Wanted& w) noexcept {
  const std::size_t page = os::page_size();
  if (w.name == nullptr || w.size == 0) return EINVAL;
  if (w.align != 0 && (!is_power_of_two(w.align) || w.align > page)) return EINVAL;
  if ((w.flags & UMC_NOHASH) != 0) {
    constexpr std::size_t room_of_slab = 128;
    if ((w.flags & UMC_NOTOUCH) != 0 || w.size > page - room_of_slab) return EINVAL;
  }
  if (w.size > ~std::size_t{0} - 2 * page) return ENOMEM;
  return 0;
}

bool may_have_class(const Cache& c) noexcept {
  return c.source == nullptr && round_up(bytes_of(c), c.align) <= ObjectRule::largest;
}

// False: no memory, or too many caches.
bool make_class(Cache& c) noexcept {
  const bool debugged = is_debugged(c);
  const heap::ObjectClass::Undo usual = c.destruct != nullptr ? undo : nullptr;
  c.home = heap.levels().make_objects({.size = bytes_of(c),
                                       .align = c.align,
                                       .prepared = debugged || c.construct != nullptr || c.destruct != nullptr,
                                       .undo = debugged ? forget_object : usual,
                                       .owner = &c});
  return c.has_class = index(c.home) != 0;
}
bool may_have_magazines(const Cache& c) noexcept {
  return (c.flags & UMC_NOMAGAZINE) == 0 && (c.debug & debug_nomagazine) == 0;
}
bool needs_handles(const Cache& c) noexcept {
  const bool costs_nothing_to_make = c.source == nullptr && c.construct == nullptr && c.destruct == nullptr && !is_debugged(c);
  return may_have_magazines(c) && !costs_nothing_to_make;
}
bool has_magazines(const Cache& c) noexcept { return c.has_class && may_have_magazines(c); }

// Memory for the description, which is no block that a program could free.
Cache* allocate_description() noexcept {
  void* const memory = heap.allocate_plain(sizeof(Cache), alignof(Cache));
  return memory == nullptr ? nullptr : new (memory) Cache{};
}

// A message takes half a KiB of stack: noinline keeps that out of the frames of those who may have something to say.
__attribute__((noinline)) void tell_of_new(const Cache& c) noexcept {
  if (!options.tells_all) return;
  Message()
      .text("umem allocator: cache ")
      .text(c.name)
      .text(": ")
      .decimal(c.size)
      .text(" bytes, debug ")
      .hex(c.debug)
      .text("\n");
}

// False: no memory. noinline: memory for the description has been allocated before, without this frame on the stack.
__attribute__((noinline)) bool set_up(Cache& c, const Wanted& w) noexcept {
  std::strncpy(c.name, w.name, sizeof c.name - 1);
  c.size = w.size;
  c.align = alignment_of(w);
  c.never_in_it = ~std::uintptr_t{0};
  c.construct = w.construct;
  c.destruct = w.destruct;
  c.reclaim = w.reclaim;
  c.private_data = w.private_data;
  c.source = w.source;
  c.flags = w.flags;
  c.debug = debug_flags_of(w);
  c.verify = verified_bytes(w.size, c.debug);
  if ((c.debug & debug_firewall) != 0) {
    // no class: each has pages of its own
  } else if (!may_have_class(c)) {
    if (c.source != nullptr && (c.flags & UMC_NOTOUCH) != 0) c.debug &= debug_nomagazine;  // pieces may be no memory
    if (needs_handles(c)) make_handles(c);
  } else if (!make_class(c)) {
    return false;
  }
  // Where slots are threads', and where each object is looked at, the fast paths are not taken.
  if (heap.core().rung() != percpu::Rung::thread && has_magazines(c) && !is_debugged(c)) {
    c.base = heap.core().object_base(c.home);
    c.never_in_it = heap::object_classes[c.home].shape.alignment() - 1;
  }
  caches.add(c);
  tell_of_new(c);
  return true;
}

}  // namespace

Cache* create(const Wanted& w) noexcept {
  if (const int error = error_in(w); error != 0) {
    errno = error;
    return nullptr;
  }
  const int saved = errno;
  Cache* const c = heap.ready() ? allocate_description() : nullptr;
  if (c != nullptr && set_up(*c, w)) {
    errno = saved;
    return c;
  }
  if (c != nullptr) heap.free_plain(c);
  errno = EAGAIN;
  return nullptr;
}

namespace {

__attribute__((noinline)) void report_not_empty(const Cache& c) noexcept {
  char buf[128];
  Writer line(buf, sizeof buf);
  line.text("umem_cache_destroy: '").text(c.name).text("' (").pointer(&c).text(") not empty\n");
  os::write_all(os::standard_error, line.written());
  if (!options.verbose) Message().text(line.written());
}

__attribute__((noinline)) void tell_of_end(const Cache& c) noexcept {
  Message().text("umem allocator: cache ").text(c.name).text(" is destroyed\n");
}

}  // namespace

// Its `reclaim` may be at work on its objects until it is in the list no more; and what others have of them is in the slabs
// before it is said that some are in use.
void destroy(Cache* c) noexcept {
  if (c == nullptr) return;
  if (!heap.is_plain(c)) report_invalid_pointer("umem_cache_destroy", c);
  if (!caches.has(*c)) report_double_free("umem_cache_destroy", c);
  const int saved = errno;
  caches.remove(*c);
  bool empty = index(c->home) == 0 || heap.remove_objects(c->home);
  if (!c->has_class && empty) c->home = {};  // its number may become another cache's, and objects may still be freed
  empty &= c->allocated.read() == c->freed.read();
  if (options.tells_all) tell_of_end(*c);
  if (empty) {
    heap.free_plain(c);
  } else {
    report_not_empty(*c);  // its objects may still be freed: the description stays
  }
  errno = saved;
}

namespace {

void destruct(const Cache& c, void* object) noexcept {
  if (c.destruct != nullptr) c.destruct(object, c.private_data);
}

void free_raw(const Cache& c, void* object) noexcept {
  if (!c.has_class) return free_apart(c, object);
  heap.levels().free_raw(object);
}

void* make_object(Cache& c) noexcept {
  void* const object =
      with_reclaim([&] { return c.has_class ? heap.levels().allocate_raw_object(c.home) : allocate_apart(c); });
  log_slab(c);
  if (object == nullptr || construct(c, object)) return object;
  free_raw(c, object);
  return nullptr;
}

void* allocate_past_levels(Cache& c) noexcept {
  void* object = c.has_handles ? take_handled(c) : nullptr;
  if (object == nullptr) object = make_object(c);
  if (object != nullptr) c.allocated.add();
  return object;
}

void free_past_levels(Cache& c, void* object) noexcept {
  if (!c.has_class && c.source == nullptr && !is_large_enough(c, object)) report_invalid_pointer("umem_cache_free", object);
  c.freed.add();
  if (c.has_handles && keep_handled(c, object)) return;
  destruct(c, object);
  free_raw(c, object);
}

void free_sampled(Cache& c, void* object) noexcept {
  if (!heap.is_sampled_object(heap::class_of(c.home), object)) report_invalid_pointer("umem_cache_free", object);
  c.freed.add();
  destruct(c, object);
  heap.free_sampled(object);
}

void* allocate_in_levels(Cache& c) noexcept {
  bool raw = false;
  void* const object = with_reclaim([&] { return heap.levels().allocate_object(c.home, raw); });
  log_slab(c);
  if (object == nullptr || !raw || construct(c, object)) return object;
  heap.levels().free_raw(object);
  return nullptr;
}

}  // namespace

void* allocate_at_hand(const Cache& c) noexcept {
  if (c.base != nullptr && heap.core().has_sequences()) return nullptr;  // that was the fast path's
  return has_magazines(c) && !is_debugged(c) ? heap.levels().object_at_hand(c.home) : nullptr;
}

// It has a block of its own, as malloc's sampled blocks have. Objects that are large blocks are sampled where those are.
void* allocate_sampled(Cache& c) noexcept {
  if (!c.has_class || is_debugged(c)) return nullptr;
  void* const object = heap.sample(heap::class_of(c.home), c.size, c.align);
  if (object == nullptr) return nullptr;
  if (!construct(c, object)) {
    heap.free_sampled(object);
    return nullptr;
  }
  c.allocated.add();
  return object;
}

void* allocate_slow(Cache& c) noexcept {
  void* const object = is_debugged(c) ? debug_allocate(c) : has_magazines(c) ? allocate_in_levels(c) : allocate_past_levels(c);
  if (object == nullptr) {
    c.failed.add();
    errno = ENOMEM;
  }
  return object;
}

void free_slow(Cache& c, void* object) noexcept {
  if (object == nullptr) return;
  if (is_debugged(c)) return debug_free(c, object);
  if (c.has_class && !heap.slabs().is_object_of(c.home, object)) return free_sampled(c, object);
  if (has_magazines(c)) return heap.levels().free_object(object, c.home);
  free_past_levels(c, object);
}

const Cache* cache_of(const void* p) noexcept {
  if (!heap.spans().window().contains(p)) return nullptr;
  const heap::HomeClass h = heap.slabs().any_class_of(p);
  const auto* const c = is_object(h) ? static_cast<const Cache*>(heap::object_classes[h].owner) : nullptr;
  return c != nullptr && c->has_handles ? nullptr : c;
}

void CacheList::add(Cache& c) noexcept {
  const os::LockGuard guard(mutex_);
  c.previous = last_;
  (last_ == nullptr ? first_ : last_->next) = &c;
  last_ = &c;
  if (c.reclaim != nullptr) reclaims_.fetch_add(1, std::memory_order_relaxed);
}
void CacheList::remove(Cache& c) noexcept {
  mutex_.lock();
  while (visited_ == &c && walker_ != os::this_thread()) {
    mutex_.unlock();
    os::sleep_briefly();
    mutex_.lock();
  }
  if (visited_ == &c) visited_ = c.previous;  // by its own walker
  (c.previous == nullptr ? first_ : c.previous->next) = c.next;
  (c.next == nullptr ? last_ : c.next->previous) = c.previous;
  if (c.reclaim != nullptr) reclaims_.fetch_sub(1, std::memory_order_relaxed);
  c.next = c.previous = nullptr;
  mutex_.unlock();
}
// A description that was freed has links of whoever has the block now, which may be anything.
bool CacheList::has(const Cache& c) noexcept {
  const os::LockGuard guard(mutex_);
  const Cache* const before = c.previous;
  return before == nullptr ? first_ == &c : heap.is_plain(before) && before->next == &c;
}
Cache* CacheList::begin_walk() noexcept {
  const os::LockGuard guard(mutex_);
  walker_ = os::this_thread();
  return visited_ = first_;
}
Cache* CacheList::go_on() noexcept {
  const os::LockGuard guard(mutex_);
  return visited_ = visited_ == nullptr ? first_ : visited_->next;
}

}  // namespace terrace::umem
