// SPDX-License-Identifier: MIT OR Apache-2.0
// The statistics as numbers, for lib.rs, which has the same struct.
#include "introspect/statistics.h"

#include "base/attributes.h"
#include "os/metadata.h"

using namespace terrace;  // NOLINT(google-build-using-namespace): this file is nothing but a name

namespace {

using introspect::Column;
using introspect::Level;

struct Statistics {
  std::uint64_t level[introspect::level_count][introspect::column_count];
  std::uint64_t live, live_large, held, dirty, purged, committed, metadata, budget, slots;
};
static_assert(static_cast<int>(Level::core) == 0 && static_cast<int>(Level::processor) == 1 &&
              static_cast<int>(Level::global) == 2 && static_cast<int>(Level::large) == 3 && introspect::level_count == 4);
static_assert(static_cast<int>(Column::allocations) == 0 && static_cast<int>(Column::frees) == 1 &&
              static_cast<int>(Column::refills) == 2 && static_cast<int>(Column::spills) == 3 &&
              static_cast<int>(Column::foreign) == 4 && static_cast<int>(Column::aborts) == 5 &&
              static_cast<int>(Column::held) == 6 && static_cast<int>(Column::purged) == 7 && introspect::column_count == 8);

}  // namespace

/// False: there is no memory for a snapshot.
extern "C" bool terrace_rust_statistics(Statistics* out) {
  const os::Scratch<introspect::Snapshot> memory;
  introspect::Snapshot* const s = memory.get();
  if (s == nullptr) return false;
  introspect::take_snapshot(*s);
  for (std::size_t l = 0; l < introspect::level_count; ++l) {
    for (std::size_t c = 0; c < introspect::column_count; ++c) out->level[l][c] = s->total[l].value[c];
  }
  out->live = s->live;
  out->live_large = s->live_large;
  out->held = s->held;
  out->dirty = s->dirty;
  out->purged = s->purged;
  out->committed = s->committed;
  out->metadata = 0;
  for (const std::uint64_t bytes : s->metadata) out->metadata += bytes;
  out->budget = heap::heap.budget();
  out->slots = heap::heap.core().slot_count();
  return true;
}
