// SPDX-License-Identifier: MIT OR Apache-2.0
#include "profile/profiler.h"

#include "base/random.h"
#include "os/clock.h"
#include "os/threads.h"
#include "profile/draw.h"
#include "profile/probes.h"

namespace terrace::profile {

constinit Profiler profiler;

namespace {

constinit thread_local std::uint64_t random_state = 0;

}  // namespace

std::uint64_t next_random() noexcept {
  if (random_state == 0)
    random_state = mixed(os::monotonic_nanoseconds()) ^ reinterpret_cast<std::uintptr_t>(&random_state) ^ os::thread_number();
  random_state += 0x9e3779b97f4a7c15U;
  return mixed(random_state);
}

void Profiler::set_period(std::uint64_t bytes) noexcept {
  const std::uint64_t start = bytes != 0 ? 1 : 0;
  word_.store(((word() >> 56) + start) << 56 | bytes, std::memory_order_relaxed);  // relaxed: see word()
}

std::uint32_t Profiler::reserve() noexcept {
  const std::uint32_t n = table_.take();
  if (n == 0) counters_.lost.fetch_add(1, std::memory_order_relaxed);  // relaxed: statistics, as the others
  return n;
}

void Profiler::record(std::uint32_t n, const Block& block) noexcept {
  Sample& s = table_.begin_writing(n);
  s.address = reinterpret_cast<std::uintptr_t>(block.address);
  s.size = block.size;
  s.weighed = block.weighed;
  s.period = block.period;
  s.object_class = block.object_class;
  s.time = os::coarse_milliseconds();
  s.tid = os::thread_number();
  const void* const frame = Entered::frame() != nullptr ? Entered::frame() : __builtin_frame_address(0);
  const bool copies = (mode_.load(std::memory_order_relaxed) & copies_bit) != 0;  // relaxed: a wish
  os::StackCopy* const copy = copies ? table_.copy_of(n) : nullptr;
  if (copy != nullptr) os::copy_stack(*copy, frame);
  s.has_copy = copy != nullptr ? 1 : 0;
  s.depth = copy != nullptr && copy->is_whole() ? 0 : os::follow_frames(frame, s.pcs, most_frames);
  table_.publish(n);
  probe_allocation(s);
  counters_.taken.fetch_add(1, std::memory_order_relaxed);
  tell(0);
}

void Profiler::drop(std::uint32_t n) noexcept {
  probe_free(table_.at(n));
  table_.drop(n);
  counters_.dropped.fetch_add(1, std::memory_order_relaxed);
}

void Profiler::resize(std::uint32_t n, std::uint64_t size) noexcept {
  table_.begin_writing(n).size = size;
  table_.end_writing(n);
}

}  // namespace terrace::profile
