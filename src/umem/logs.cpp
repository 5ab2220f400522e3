// SPDX-License-Identifier: MIT OR Apache-2.0
// The four logs: which there are, and what goes into those of failures and slabs. What happens to objects: debug.cpp.
#include "heap/heap.h"
#include "os/clock.h"
#include "os/stack.h"
#include "os/threads.h"
#include "umem/log.h"
#include "umem/messages.h"

#include <cerrno>
#include <string_view>

extern "C" {
// Of libumem's names.
terrace::umem::Log* umem_transaction_log __attribute__((visibility("default")));
terrace::umem::Log* umem_content_log __attribute__((visibility("default")));
terrace::umem::Log* umem_failure_log __attribute__((visibility("default")));
terrace::umem::Log* umem_slab_log __attribute__((visibility("default")));
}

namespace terrace::umem {
namespace {

constexpr unsigned frames_logged = 32;

// What an event is not without.
struct Needed {
  unsigned debug;
  const char* otherwise;
};
void tell(std::string_view name, std::uint64_t bytes) noexcept {
  if (options.tells_all) Message().text("umem allocator: log ").text(name).text(": ").decimal(bytes).text(" bytes\n");
}

constexpr Needed nothing{.debug = 0, .otherwise = nullptr};
constexpr Needed audit{.debug = debug_audit, .otherwise = "wants UMEM_DEBUG=audit"};

void open(Log*& log, std::string_view name, std::uint64_t bytes, std::size_t most_behind, Needed needed,
          Complain complain) noexcept {
  if (bytes == 0) return;
  if ((options.debug & needed.debug) != needed.debug)
    return complain("UMEM_LOGGING", name.data(), name.size(), needed.otherwise);
  log = Log::open(name.data(), bytes, most_behind);
  if (log != nullptr) tell(name, log->bytes);
  if (log == nullptr) complain("UMEM_LOGGING", name.data(), name.size(), "wants more memory than there is");
}

template <class Use>
void for_each_log(Use use) noexcept {
  for (Log* const log : {umem_transaction_log, umem_content_log, umem_failure_log, umem_slab_log}) {
    if (log != nullptr) use(*log);
  }
}

void add_with_stack(Log& log, Happened what, const Cache* cache, const void* object, std::uint64_t size) noexcept {
  const int saved = errno;
  const void* stack[frames_logged];
  const unsigned depth = os::capture_stack(stack, min_of(options.frames, frames_logged));
  const Event e{.object = object,
                .cache = cache,
                .nanoseconds = os::monotonic_nanoseconds(),
                .thread = os::thread_number(),
                .ahead = 0,
                .depth = static_cast<std::uint8_t>(depth),
                .what = what,
                .last_log = nullptr,
                .contents = nullptr};
  log.add(e, size, stack, depth * sizeof(void*));
  errno = saved;
}

}  // namespace

void open_logs(Complain complain) noexcept {
  const std::size_t frames = options.frames * sizeof(void*);
  open(umem_transaction_log, "transaction", options.transaction_log, frames, audit, complain);
  open(umem_content_log, "contents", options.content_log, min_of<std::uint64_t>(options.contents, heap::ObjectRule::largest),
       audit, complain);
  open(umem_failure_log, "fail", options.failure_log, frames, nothing, complain);
  open(umem_slab_log, "slab", options.slab_log, frames, nothing, complain);
}

bool any_log() noexcept {
  bool any = false;
  for_each_log([&](Log&) { any = true; });
  return any;
}

void logs_after_fork_in_child() noexcept {
  os::forget_thread_number();
  for_each_log([](Log& log) { log.after_fork_in_child(); });
}

void log_failure(const Cache* cache, std::uint64_t size) noexcept {
  if (umem_failure_log != nullptr) [[unlikely]]
    add_with_stack(*umem_failure_log, Happened::failed, cache, nullptr, size);
}

void log_slab(const Cache& cache) noexcept {
  if (umem_slab_log == nullptr) [[likely]]
    return;
  const void* const slab = heap::heap.slabs().take_made_slab(cache.home);
  if (slab == nullptr) return;
  const std::uint64_t bytes = std::uint64_t{heap::object_classes[cache.home].shape.granules} * span::granule_size;
  add_with_stack(*umem_slab_log, Happened::slab_made, &cache, slab, bytes);
}

}  // namespace terrace::umem
