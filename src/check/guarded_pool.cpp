// SPDX-License-Identifier: MIT OR Apache-2.0
#include "check/guarded_pool.h"

#include "base/report.h"
#include "check/zones.h"
#include "os/guard_pages.h"
#include "os/io.h"
#include "os/metadata.h"
#include "os/stack.h"

namespace terrace::check {
namespace {

constexpr std::size_t line_size = 512;

void take_trace(Trace& trace) noexcept {
  trace.count = os::capture_stack(trace.frames, Trace::longest);
  trace.thread = os::thread_id();
}

void write_trace(const char* what, const Trace& trace) noexcept {
  if (trace.thread == 0) return;
  char buf[line_size];
  Writer head(buf, sizeof buf);
  head.text("  ").text(what).text(" by thread ").decimal(static_cast<std::uint64_t>(trace.thread));
  os::write_all(os::standard_error, head.text(trace.count != 0 ? " at\n" : "\n").written());
  for (unsigned i = 0; i < trace.count; ++i) {
    Writer line(buf, sizeof buf);
    line.text("    #").decimal(i).text(" ");
    os::describe_code(line, trace.frames[i]);
    os::write_all(os::standard_error, line.text("\n").written());
  }
}

std::uint64_t distance(const void* from, const void* to) noexcept { return address_of(to) - address_of(from); }

}  // namespace

bool GuardedPool::open(std::uint64_t interval) noexcept {
  const std::size_t page = os::page_size();
  const std::size_t bytes = (2 * page_count + 1) * page;
  pages_ = os::map_metadata<Page>(os::Metadata::checks, page_count);
  // Blocks of the program: not metadata. allocate() makes pages of it readable one by one.
  base_ = static_cast<std::byte*>(os::reserve(bytes, nullptr));
  if (pages_ == nullptr || base_ == nullptr) return false;
  for (std::uint32_t i = 0; i < page_count; ++i) queue_[i] = static_cast<std::uint16_t>(i);
  waiting_ = page_count;
  interval_ = interval;
  bytes_ = bytes;
  return true;
}

bool GuardedPool::contains(const void* p) const noexcept { return address_of(p) - address_of(base_) < bytes_; }

// Pages and guards take turns, and a guard comes first.
std::byte* GuardedPool::address(std::uint32_t page) const noexcept {
  return base_ + (2 * std::size_t{page} + 1) * os::page_size();
}

// Of a guard page, the half next to it belongs to each neighbour; the block at the nearer end may be the other one, but an
// access so far from both is a guess anyway.
GuardedPool::Page& GuardedPool::nearest(const void* p) noexcept {
  const std::size_t size = os::page_size();
  const std::size_t at = address_of(p) - address_of(base_);
  const std::size_t from_first = at < size / 2 ? 0 : at - size / 2;
  return pages_[min_of<std::size_t>(from_first / (2 * size), page_count - 1)];
}

const std::byte* GuardedPool::beginning(const Page& page) const noexcept {
  return address(static_cast<std::uint32_t>(&page - pages_));
}

bool GuardedPool::takes_turn() noexcept {
  // relaxed: a number among threads, nothing is read on account of it.
  return interval_ != 0 && calls_.fetch_add(1, std::memory_order_relaxed) % interval_ == 0;
}

void* GuardedPool::allocate(std::size_t size, std::size_t align) noexcept {
  const std::size_t length = os::page_size();
  if (size > length || align > length || !takes_turn()) return nullptr;
  if (__atomic_load_n(&waiting_, __ATOMIC_RELAXED) == 0) return nullptr;  // a hint, before the stack is walked for nothing
  Trace trace;
  take_trace(trace);
  const os::LockGuard guard(mutex_);
  if (waiting_ == 0) return nullptr;
  const std::uint32_t i = queue_[first_ % page_count];
  if (!os::commit(address(i), length)) return nullptr;
  ++first_;
  __atomic_store_n(&waiting_, waiting_ - 1, __ATOMIC_RELAXED);
  Page& page = pages_[i];
  at_end_ = !at_end_;
  page.start = address(i) + (at_end_ ? round_down(length - size, max_of<std::size_t>(align, smallest_zone)) : 0);
  page.size = size;
  page.align = align;
  page.allocated = trace;
  page.freed = {};
  page.state = State::live;
  std::memset(address(i), zone_byte, static_cast<std::size_t>(page.start - address(i)));
  std::memset(page.start + size, zone_byte, static_cast<std::size_t>(address(i) + length - page.start) - size);
  return page.start;
}

// The page of a live block that starts at p.
GuardedPool::Page& GuardedPool::checked(const void* p, const char* function) noexcept {
  Page& page = nearest(p);
  if (page.start == p && page.state == State::freed) report_double_free(function, p);
  if (page.start == p && page.state == State::live) return page;
  if (page.state == State::live && distance(page.start, p) < page.size)
    report_interior_pointer(function, p, {.start = page.start, .size = page.size});
  report_invalid_pointer(function, p);
}

GuardedPool::Block GuardedPool::look(const void* p, const char* function) noexcept {
  const os::LockGuard guard(mutex_);
  const Page& page = checked(p, function);
  return {.size = page.size, .align = page.align};
}

void GuardedPool::free(void* p, const char* function) noexcept {
  Trace trace;
  take_trace(trace);
  const os::LockGuard guard(mutex_);
  Page& page = checked(p, function);
  const std::byte* const begin = beginning(page);
  const std::byte* const end = begin + os::page_size();
  const ReportedBlock block{.start = page.start, .size = page.size};
  page.freed = trace;
  if (!holds_only(page.start + page.size, distance(page.start + page.size, end), zone_byte))
    report_out_of_bounds(function, block, true);
  if (!holds_only(begin, distance(begin, page.start), zone_byte)) report_out_of_bounds(function, block, false);
  page.state = State::freed;
  const auto i = static_cast<std::uint32_t>(&page - pages_);
  os::purge(address(i), os::page_size());
  os::deny_access(address(i), os::page_size());
  queue_[(first_ + waiting_) % page_count] = static_cast<std::uint16_t>(i);
  __atomic_store_n(&waiting_, waiting_ + 1, __ATOMIC_RELAXED);
}

void GuardedPool::describe(const void* p) noexcept {
  if (!contains(p)) return;
  const Page& page = nearest(p);
  write_trace("allocated", page.allocated);
  write_trace("freed", page.freed);
}

void GuardedPool::report_fault(const os::Fault& fault) noexcept {
  if (!contains(fault.address)) return;
  const Page& page = nearest(fault.address);
  char buf[line_size];
  Writer line(buf, sizeof buf);
  line.text("terrace: ").text(fault.access).text(" at ").pointer(fault.address);
  const auto* const at = static_cast<const std::byte*>(fault.address);
  if (page.state == State::unused) {
    line.text(", near no block");
  } else if (at < page.start) {
    line.text(", ").decimal(distance(at, page.start)).text(" bytes before the start of");
  } else if (at >= page.start + page.size) {
    line.text(", ").decimal(distance(page.start + page.size, at)).text(" bytes beyond the end of");
  } else {
    line.text(", ").decimal(distance(page.start, at)).text(" bytes into");
  }
  if (page.state != State::unused) {
    line.text(page.state == State::freed ? " the freed block of " : " the block of ").decimal(page.size);
    line.text(" bytes at ").pointer(page.start);
  }
  os::write_all(os::standard_error, line.text("\n").written());
  Writer where(buf, sizeof buf);
  where.text("  ")
      .text(fault.access)
      .text(" by thread ")
      .decimal(static_cast<std::uint64_t>(os::thread_id()))
      .text(" at\n    #0 ");
  os::describe_code(where, fault.code);
  os::write_all(os::standard_error, where.text("\n").written());
  describe(fault.address);
}

}  // namespace terrace::check
