// SPDX-License-Identifier: MIT OR Apache-2.0
#include "umem/faults.h"

#include "heap/heap.h"
#include "os/clock.h"
#include "umem/firewall.h"
#include "umem/messages.h"

extern "C" {
terrace::umem::AbortInfo umem_abort_info __attribute__((visibility("default")));
}

namespace terrace::umem {

using heap::heap;

namespace {

const char* name_of(const Cache* c) noexcept { return c != nullptr ? c->name : "umem_oversize"; }

// Where the object's memory begins: that of its slab, or pages of its own.
const void* memory_of(const void* object) noexcept {
  if (const Walled* const w = walled_at(object)) return w->pages;
  return heap.spans().window().contains(object) ? heap.slab_start(object) : nullptr;
}

void say_what(Fault fault, const Cache* c, const void* object, const Details& d) noexcept {
  Message m;
  m.text("umem allocator: ");
  switch (fault) {
    case Fault::modified:
      m.text("buffer modified after being freed\nmodification occurred at offset 0x")
          .hex(address_of(d.word) - address_of(object))
          .text(" (0x")
          .hex(freed_pattern)
          .text(" replaced by 0x")
          .hex(*d.word)
          .text(")");
      break;
    case Fault::redzone: m.text("redzone violation: write past end of buffer"); break;
    case Fault::duplicate_free: m.text("duplicate free: buffer freed twice"); break;
    case Fault::bad_address: m.text("invalid free: buffer not in cache"); break;
    case Fault::bad_tag:
      m.text("boundary tag corrupted\nbcp ^ bxstat = ").hex(d.found).text(", should be ").hex(d.wanted);
      break;
    case Fault::bad_record: m.text("bufctl corrupted"); break;
    case Fault::wrong_cache:
      m.text("buffer freed to wrong cache\nbuffer was allocated from ")
          .text(d.other->name)
          .text(",\ncaller attempting free to ")
          .text(name_of(c))
          .text(".");
      break;
    case Fault::bad_size:
      m.text("bad free: free size (").decimal(d.found).text(") != alloc size (").decimal(d.wanted).text(")");
      break;
    case Fault::bad_base:
      m.text("bad free: free address (").pointer(object).text(") != alloc address (").pointer(d.base).text(")");
      break;
    case Fault::wrong_function:
      m.text(d.aligned ? "bad free: memory of umem_alloc_align() freed by umem_free()"
                       : "bad free: memory of umem_alloc() freed by umem_free_align()");
      break;
    case Fault::none:
    case Fault::bad_block:
    case Fault::panic: break;  // not said here
  }
  m.text("\n");
}

void say_time(const Record& r, const void* object, std::uint64_t ago) noexcept {
  Message m;
  m.text("previous transaction on buffer ").pointer(object).text(":\nthread=").decimal(r.event.thread).text("  time=T-");
  m.decimal(ago / 1'000'000'000).text(".");
  char digits[10];  // nine, with zeroes in front
  std::uint64_t rest = ago % 1'000'000'000;
  for (int i = 8; i >= 0; --i, rest /= 10) digits[i] = static_cast<char>('0' + rest % 10);
  m.text({digits, 9}).text("  slab=").pointer(memory_of(object)).text("  cache: ").text(name_of(r.event.cache)).text("\n");
}

void say_last_transaction(const Record& r, const void* object) noexcept {
  if (r.event.what == Happened::nothing) return;
  const std::uint64_t ago = os::monotonic_nanoseconds() - r.event.nanoseconds;
  say_time(r, object, ago);
  say_stack(r.stack, r.event.depth);
}

void keep(Fault fault, const Cache* c, const void* object, const Record* record, const Details& d) noexcept {
  const bool is_somebodys = fault != Fault::bad_address;
  const void* const block = record != nullptr ? block_in(*record) : nullptr;
  umem_abort_info = {.error = static_cast<int>(fault),
                     .buffer = block != nullptr ? block : object,
                     .real_buffer = d.base != nullptr ? d.base
                                    : is_somebodys    ? object
                                                      : nullptr,
                     .cache = c,
                     .real_cache = d.other != nullptr ? d.other
                                   : is_somebodys     ? c
                                                      : nullptr,
                     .slab = memory_of(object),
                     .bufctl = record,
                     .timestamp = os::monotonic_nanoseconds()};
}

}  // namespace

void report(Fault fault, const Cache* c, const void* object, const Record* record, const Details& details) noexcept {
  keep(fault, c, object, record, details);
  say_what(fault, c, object, details);
  Message().text("buffer=").pointer(object).text("  bufctl=").pointer(record).text("  cache: ").text(name_of(c)).text("\n");
  const void* const block = record != nullptr ? block_in(*record) : nullptr;
  if (block != nullptr) Message().text("block of malloc in it: ").pointer(block).text("\n");
  if (record != nullptr) say_last_transaction(*record, object);
  heap_is_corrupt();
}

void keep_for_core(Fault fault, const void* buffer) noexcept {
  umem_abort_info = {.error = static_cast<int>(fault),
                     .buffer = buffer,
                     .real_buffer = nullptr,
                     .cache = nullptr,
                     .real_cache = nullptr,
                     .slab = nullptr,
                     .bufctl = nullptr,
                     .timestamp = os::monotonic_nanoseconds()};
}

}  // namespace terrace::umem
