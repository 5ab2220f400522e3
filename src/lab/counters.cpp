// SPDX-License-Identifier: MIT OR Apache-2.0
#include "lab/heap.h"

namespace terrace::lab {

void add(Counts& sum, const Counts& more) noexcept {
  sum.labs.add(more.labs.read());
  sum.lab_bytes.add(more.lab_bytes.read());
  sum.short_labs.add(more.short_labs.read());
  sum.transactions.add(more.transactions.read());
  sum.partial.add(more.partial.read());
  sum.wasted_bytes.add(more.wasted_bytes.read());
  sum.retired_bytes.add(more.retired_bytes.read());
}

namespace {

void add_counts(terrace_lab_counts& out, const Counts& c) noexcept {
  out.labs += c.labs.read();
  out.lab_bytes += c.lab_bytes.read();
  out.short_labs += c.short_labs.read();
  out.transactions += c.transactions.read();
  out.partial += c.partial.read();
  out.wasted_bytes += c.wasted_bytes.read();
  out.retired_bytes += c.retired_bytes.read();
}

void add_events(terrace_lab_counts& out, const Buffer& b) noexcept {
  const auto read = [](const std::atomic<std::uint64_t>& n) { return n.load(std::memory_order_relaxed); };
  out.foreign += read(b.foreign);
  out.busy += read(b.busy);
  out.neighbours += read(b.neighbours);
  out.failed += read(b.failed);
  out.invalid += read(b.invalid);
  out.sidelined += read(b.sidelined);
  out.sidelined_bytes += read(b.sidelined_bytes);
}

}  // namespace

void Heap::read_counters(terrace_lab_counters& out) noexcept {
  out = {};
  const os::LockGuard guard(threads_mutex_);
  add_counts(out.level[TERRACE_LAB_THREAD], departed_.counts);
  out.direct = departed_.direct.read() + direct_.read();
  out.direct_bytes = departed_.direct_bytes.read() + direct_bytes_.read();
  out.padding_bytes = departed_.padding_bytes.read();
  for (const Thread* t = threads_; t != nullptr; t = t->next) {
    add_counts(out.level[TERRACE_LAB_THREAD], t->counts);
    out.direct += t->direct.read();
    out.direct_bytes += t->direct_bytes.read();
    out.padding_bytes += t->padding_bytes.read();
  }
  for (int l = TERRACE_LAB_CORE; l < TERRACE_LAB_LEVELS; ++l) {
    const Level& level = levels_[l];
    for (unsigned i = 0; i < level.count; ++i) {
      add_counts(out.level[l], level.buffers[i].counts);
      add_events(out.level[l], level.buffers[i]);
    }
    out.level[l].drained = level.drained.read();
    out.level[l].drained_bytes = level.drained_bytes.read();
    out.level[l].unused_sidelined = level.unused_sidelined.read();
    out.level[l].unused_sidelined_bytes = level.unused_sidelined_bytes.read();
  }
  out.collections = collections_;
  out.flips = flips_;
  out.by_core = collections_by_core_;
}

}  // namespace terrace::lab
