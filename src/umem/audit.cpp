// SPDX-License-Identifier: MIT OR Apache-2.0
#include "umem/audit.h"

#include "heap/heap.h"
#include "os/clock.h"
#include "os/stack.h"
#include "os/threads.h"
#include "umem/messages.h"

namespace terrace::umem {

Record* make_record(const Cache* cache, const void* object, unsigned debug, std::size_t before) noexcept {
  const std::size_t frames = (debug & debug_audit) != 0 ? options.frames : 0;
  auto* const memory =
      static_cast<std::byte*>(heap::heap.allocate_plain(before + sizeof(Record) + frames * sizeof(void*), alignof(Record)));
  if (memory == nullptr) return nullptr;
  auto* const r = reinterpret_cast<Record*>(memory + before);
  r->event = {.object = object,
              .cache = cache,
              .nanoseconds = 0,
              .thread = 0,
              .ahead = 0,
              .depth = 0,
              .what = Happened::nothing,
              .last_log = nullptr,
              .contents = nullptr};
  return r;
}

void note(Record& r, unsigned debug, std::size_t size, Happened what, const LogEntry* contents) noexcept {
  if ((debug & debug_audit) == 0) return;
  if ((debug & debug_checksignal) != 0 && os::in_signal_handler()) panic("called from signal handler");
  Event& e = r.event;
  e.nanoseconds = os::monotonic_nanoseconds();
  e.thread = os::thread_number();
  e.depth = static_cast<std::uint8_t>(os::capture_stack(r.stack, options.frames));
  e.what = what;
  e.contents = contents;
  if (umem_transaction_log == nullptr) return;
  const LogEntry* const entry = umem_transaction_log->add(e, size, r.stack, e.depth * sizeof(void*));
  if (entry != nullptr) e.last_log = entry;
}

const LogEntry* save_contents(const Record& r, unsigned debug, std::size_t size) noexcept {
  if ((debug & debug_audit) == 0 || (debug & debug_contents) == 0 || umem_content_log == nullptr) return nullptr;
  const Event e{.object = r.event.object,
                .cache = r.event.cache,
                .nanoseconds = os::monotonic_nanoseconds(),
                .thread = os::thread_number(),
                .ahead = r.event.ahead,
                .depth = 0,
                .what = Happened::held,
                .last_log = nullptr,
                .contents = nullptr};
  return umem_content_log->add(e, size, e.object, min_of<std::uint64_t>(size, umem_content_log->most_behind));
}

}  // namespace terrace::umem
