// SPDX-License-Identifier: MIT OR Apache-2.0
// The names of libumem: include/umem.h.
#include "heap/fast_path/fast_path.h"
#include "heap/fast_path/object_path.h"
#include "heap/heap.h"
#include "introspect/descriptors.h"
#include "os/auxv.h"
#include "os/environment.h"
#include "os/memory.h"
#include "os/stack.h"
#include "umem.h"
#include "umem/cache.h"
#include "umem/debug.h"
#include "umem/default_caches.h"
#include "umem/descriptors.h"
#include "umem/firewall.h"
#include "umem/log.h"
#include "umem/messages.h"
#include "umem/nofail.h"
#include "umem/options.h"
#include "umem/tagged.h"
#include "umem/update.h"
#include "vmem/fork.h"

#include <cerrno>
#include <cstring>

using namespace terrace;  // NOLINT(google-build-using-namespace): this file is nothing but the names

extern "C" unsigned terrace_enter_vfork() __attribute__((visibility("hidden")));  // process.cpp

namespace {

// Members of the archive that nothing else refers to: the fork handlers, and what debuggers look for.
[[gnu::used]] unsigned (*const process)() = terrace_enter_vfork;
[[gnu::used]] const void* const described[] = {&terrace_debug_descriptor, &terrace_umem_descriptor};

// Below a page malloc's classes are as this interface wants them aligned.
static_assert([] {
  for (std::size_t size = cache_line; size < os::smallest_page; size += cache_line) {
    if (heap::class_size(heap::class_for(size)) % cache_line != 0) return false;
  }
  return true;
}());

__attribute__((noinline)) void* allocate_plainly(std::size_t size) {
  // That has missed: a second pop would count on, past the allocation that is to be sampled.
  if (size <= heap::fast_path.below_page_limit) return heap::allocate_slow(size);
  const std::size_t page = os::page_size();
  if (size % page == 0) return heap::heap.allocate_aligned(size, page);
  if (size % cache_line == 0 && size > heap::SizeRule::fine_max) return heap::heap.allocate_aligned(size, cache_line);
  return heap::allocate(size);
}

// Where UMEM_OPTIONS has changed the sizes, and nothing is looked at, memory by size is the caches' by their fast paths. False,
// null: the cold way is the caller's.
TERRACE_INLINE void* allocate_by_default_cache(std::size_t size) noexcept {
  umem::Cache* const c = umem::default_cache_for(size);
  return c != nullptr && c->base != nullptr ? heap::allocate_object(c->base) : nullptr;
}
TERRACE_INLINE bool free_to_default_cache(void* memory, std::size_t size) noexcept {
  umem::Cache* const c = umem::default_cache_for(size);
  if (c == nullptr || c->base == nullptr || !heap::heap.spans().window().contains(memory)) return false;
  return heap::heap.slabs().any_class_of(memory) == c->home && heap::free_object(c->base, memory);
}

// Fault injection, and what becomes of a NULL.
template <class Attempt>
void* debugged(int flags, const umem_cache_t* cache, std::size_t size, Attempt attempt) {
  if ((flags & UMEM_NOFAIL) == 0 && heap::heap.redirected() && umem::is_to_fail()) {
    umem::log_failure(cache, size);
    errno = ENOMEM;
    return nullptr;
  }
  void* const p = umem::until_it_succeeds(flags, [&] {
    void* const q = attempt();
    if (q == nullptr) umem::log_failure(cache, size);
    return q;
  });
  if (p == nullptr && (umem::options.debug & umem::debug_checknull) != 0) umem::panic("out of heap space");
  return p;
}

__attribute__((cold, noinline)) void* allocate_by_tables(std::size_t size, int flags) {
  return debugged(flags, nullptr, size, [=] {
    void* const p = umem::allocate_by_size(size);
    if (p == nullptr) errno = ENOMEM;
    return p;
  });
}

// What takes more stack is no part of its frame: below it lies the longest way of malloc.
__attribute__((cold, noinline)) void* allocate_rest(std::size_t size, int flags) {
  if (void* const object = allocate_by_default_cache(size)) return object;
  if (size == 0) return nullptr;
  umem::update_if_due();
  if (umem::default_caches_on()) return allocate_by_tables(size, flags);
  if ((flags & UMEM_NOFAIL) == 0) return allocate_plainly(size);
  return umem::until_it_succeeds(flags, [=] { return allocate_plainly(size); });
}

void* allocate_aligned(std::size_t size, std::size_t align, int flags) {
  if (size == 0) return nullptr;
  if (!is_power_of_two(align)) {
    errno = EINVAL;
    return nullptr;
  }
  return debugged(flags, nullptr, size, [=] {
    void* const p =
        umem::default_caches_on() ? umem::allocate_aligned_by_size(size, align) : umem::with_reclaim([=]() -> void* {
          return heap::heap.ready() ? heap::heap.allocate_plain(size, align) : nullptr;
        });
    if (p == nullptr) errno = ENOMEM;
    return p;
  });
}

__attribute__((cold, noinline)) void release_rest(void* memory, std::size_t size) {
  if (free_to_default_cache(memory, size) || memory == nullptr) return;
  if (umem::default_caches_on()) return umem::free_by_size(memory, size);
  heap::heap.free(memory, {.function = "umem_free", .size = size, .has_size = true});
}

TERRACE_INLINE void release(void* memory, std::size_t size) {
  heap::free_or(memory, [=]() noexcept { release_rest(memory, size); });
}

__attribute__((cold, noinline)) void release_aligned_rest(void* memory, std::size_t size) {
  if (memory == nullptr) return;
  if (umem::default_caches_on()) return umem::free_by_size(memory, size, true);
  heap::heap.free(memory, {.function = "umem_free_align", .size = size, .has_size = true});
}

void release_aligned(void* memory, std::size_t size) {
  heap::free_or(memory, [=]() noexcept { release_aligned_rest(memory, size); });
}

__attribute__((cold, noinline)) void* allocate_object_rest(umem_cache_t* cache, int flags) {
  const profile::Entered entered(__builtin_frame_address(0));
  if (!heap::heap.redirected()) {
    if (void* const object = umem::allocate_at_hand(*cache)) return object;
  }
  umem::update_if_due();
  return debugged(flags, cache, cache->size, [=] {
    void* const sampled = heap::Sampling::on() ? umem::allocate_sampled(*cache) : nullptr;
    return sampled != nullptr ? sampled : umem::allocate_slow(*cache);
  });
}

constexpr heap::AcrossFork::UpperLocks locks{
    .lock =
        []() noexcept {
          terrace::vmem::lock_arenas();
          umem::caches.mutex().lock();
        },
    .unlock =
        []() noexcept {
          umem::caches.mutex().unlock();
          terrace::vmem::unlock_arenas();
        },
    .reset =
        []() noexcept {
          umem::caches.reset_after_fork();
          terrace::vmem::reset_arenas_after_fork();
        },
    .in_child =
        []() noexcept {
          umem::update_after_fork_in_child();
          umem::messages_after_fork_in_child();
          umem::logs_after_fork_in_child();
          umem::firewall_after_fork_in_child();
        },
};

}  // namespace

extern "C" {
// A program's wishes, which its environment overrides. Defined by the program, or not.
const char* _umem_options_init() __attribute__((weak));  // NOLINT(bugprone-reserved-identifier): the interface's
const char* _umem_debug_init() __attribute__((weak));    // NOLINT(bugprone-reserved-identifier)
const char* _umem_logging_init() __attribute__((weak));  // NOLINT(bugprone-reserved-identifier)
}

namespace {

void complain(const char* variable, const char* item, std::size_t length, const char* why) {
  umem::Message().text("umem allocator: ").text(variable).text(": '").text({item, length}).text("' ").text(why).text("\n");
}

const char* wish(const char* variable, const char* (*of_program)()) {
  const char* const text = os::environment(variable);
  return text == nullptr && of_program != nullptr ? of_program() : text;
}

// UMEM_DEBUG first: it says whether complaints are shown.
void read_wishes() {
  umem::Options& o = umem::options;
  const char* const debug = wish("UMEM_DEBUG", _umem_debug_init);
  const umem::Complain say = os::secure_mode() ? nullptr : complain;
  umem::parse_debug(debug, o, nullptr);  // `verbose` may come last
  umem::parse_debug(debug, o, say);
  umem::parse_options(wish("UMEM_OPTIONS", _umem_options_init), o, say);
  umem::parse_logging(wish("UMEM_LOGGING", _umem_logging_init), o, say);
  if (!os::secure_mode()) return;
  o.verbose = o.tells_all = false;  // also when the program's own functions want it
  o.mtbf = 0;
}

// The hooks of a program are its functions: they may allocate, and find a heap without options.
__attribute__((constructor(102))) void at_start() {
  heap::heap.across_fork().set_upper_locks(locks);
  heap::heap.set_last_resort(umem::reclaim_now);
  read_wishes();
  const umem::Options& o = umem::options;
  umem::set_reap_interval(o.reap_interval_s * 1000);
  if (!heap::heap.ready()) return;
  if (o.has_perthread_cache)
    heap::heap.set_budget(max_of<std::uint64_t>(o.perthread_cache, 1) * heap::heap.core().slot_count());
  umem::open_logs(complain);
  if ((o.debug & umem::debug_audit) != 0 || umem::any_log()) os::prefer_libunwind();
  const bool is_looked_at = o.debug != 0 || umem::any_log() || o.no_magazines || o.mtbf != 0;
  if ((!is_looked_at && o.size_changes == 0) || !umem::open_default_caches(complain)) return;
  if (is_looked_at) {
    heap::heap.redirect(umem::tagged_malloc);
  } else {
    heap::heap.redirect_sizes();
  }
}

}  // namespace

extern "C" {

// Aligned, as malloc and free are: their fast paths lie on as few lines as they fit on.
__attribute__((aligned(64))) TERRACE_EXPORT void* umem_alloc(std::size_t size, int flags) {
  return heap::allocate_or<&heap::FastPath::below_page_limit>(size, [=] { return allocate_rest(size, flags); });
}

TERRACE_EXPORT void* umem_zalloc(std::size_t size, int flags) {
  void* const p = umem_alloc(size, flags);
  return p == nullptr ? nullptr : std::memset(p, 0, size);
}

__attribute__((aligned(64))) TERRACE_EXPORT void umem_free(void* memory, std::size_t size) { release(memory, size); }

TERRACE_EXPORT void* umem_alloc_align(std::size_t size, std::size_t align, int flags) {
  return allocate_aligned(size, align, flags);
}
TERRACE_EXPORT void umem_free_align(void* memory, std::size_t size) { release_aligned(memory, size); }
TERRACE_EXPORT void* umem_alloc_aligned(std::size_t size, std::size_t align, int flags) {
  return allocate_aligned(size, align, flags);
}
TERRACE_EXPORT void umem_free_aligned(void* memory, std::size_t size) { release_aligned(memory, size); }

TERRACE_EXPORT void umem_nofail_callback(umem_nofail_callback_t* callback) { umem::set_nofail_callback(callback); }

TERRACE_EXPORT umem_cache_t* umem_cache_create(char* name, std::size_t bufsize, std::size_t align,
                                               umem_constructor_t* constructor, umem_destructor_t* destructor,
                                               umem_reclaim_t* reclaim, void* private_data, vmem_t* source, int cflags) {
  return umem::create({.name = name,
                       .size = bufsize,
                       .align = align,
                       .construct = constructor,
                       .destruct = destructor,
                       .reclaim = reclaim,
                       .private_data = private_data,
                       .source = source,
                       .flags = static_cast<unsigned>(cflags)});
}
TERRACE_EXPORT void umem_cache_destroy(umem_cache_t* cache) { umem::destroy(cache); }

__attribute__((aligned(64))) TERRACE_EXPORT void* umem_cache_alloc(umem_cache_t* cache, int flags) {
  if (cache->base != nullptr) [[likely]] {
    if (void* const object = heap::allocate_object(cache->base)) [[likely]]
      return object;
  }
  return allocate_object_rest(cache, flags);
}

__attribute__((aligned(64))) TERRACE_EXPORT void umem_cache_free(umem_cache_t* cache, void* object) {
  if ((address_of(object) & cache->never_in_it) == 0 && heap::free_object(cache->base, object)) [[likely]]
    return;
  umem::free_slow(*cache, object);
}

TERRACE_EXPORT void umem_setmtbf(std::uint32_t rate) { umem::options.mtbf = rate; }
TERRACE_EXPORT void umem_reap() { umem::reap(); }

TERRACE_EXPORT void umem_cache_applyall(void (*function)(umem_cache_t*)) {
  umem::caches.for_each([=](umem::Cache& cache) { function(&cache); });
}

}  // extern "C"
