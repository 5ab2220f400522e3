// SPDX-License-Identifier: MIT OR Apache-2.0
#include "introspect/statistics.h"
#include "profile/profiler.h"

namespace terrace::introspect {
namespace {

using heap::HomeClass;
using heap::max_size_classes;
using level::Slot;

/// By size class: blocks in the slots, and what those have counted.
struct Held {
  std::array<std::uint64_t, max_size_classes> slots{}, popped{}, refills{}, spills{};
};

using Rows = std::array<Row, max_size_classes>;

// What others change meanwhile may be read in any order.
constexpr std::uint64_t less(std::uint64_t a, std::uint64_t b) noexcept { return a - min_of(a, b); }

void count_words(const heap::Magazines& magazines, const Slot& slot, Held& held) noexcept {
  for (std::size_t h = 1; h < level::slot_words; ++h) {
    const std::size_t c = index(heap::class_of(heap::home_at(h)));
    held.popped[c] += level::peek(slot.popped[h]);
    for (const Word w : {level::peek(slot.words[h]), level::peek(slot.previous[h])}) {
      held.slots[c] += magazines.count_at(w);
    }
  }
  for (std::size_t c = 0; c < max_size_classes; ++c) {
    held.refills[c] += slot.refills[c].read();
    held.spills[c] += slot.spills[c].read();
  }
}

void count_held(heap::Heap& h, Held& held) noexcept {
  h.core().for_each([&](const Slot& slot) { count_words(h.magazines(), slot, held); });
  // Read after the slots' counts: what is armed meanwhile raises this number first.
  for (std::size_t i = 1; i < level::slot_words; ++i)
    held.popped[index(heap::class_of(heap::home_at(i)))] += profile::profiler.armed(i).load(std::memory_order_relaxed);
}

// Sequences of allocation count by size class, those of freeing by home class; 0 is what has no class (whole magazines).
std::uint64_t aborts_of(std::size_t c) noexcept {
  std::uint64_t sum = 0;
  for (std::size_t h = 0; h < heap::home_class_count; ++h) {
    if (index(heap::class_of(HomeClass{static_cast<std::uint8_t>(h)})) == c) {
      sum += __atomic_load_n(&terrace_abort_counts[h], __ATOMIC_RELAXED);
    }
  }
  return sum;
}

// The core level: allocations are counted, each refill being one; what was freed follows from what is live.
Row core_row(const heap::TransferCounters& t, const Held& held, std::size_t c, std::uint64_t live, std::size_t size) noexcept {
  Row r;
  const std::uint64_t allocations = less(held.popped[c] + held.refills[c], t.failed_refills.read()) + t.handed_out.read();
  r.set(Column::allocations, allocations);
  r.set(Column::frees, less(allocations, live));
  r.set(Column::refills, held.refills[c]);
  r.set(Column::spills, held.spills[c]);
  r.set(Column::foreign, t.foreign.read());
  r.set(Column::held, held.slots[c] * size);
  return r;
}

void count_depots(heap::Heap& h, Rows& rows) noexcept {
  h.levels().for_each_shard([&](const level::Shard& shard) {
    for (std::size_t key = 1; key < level::block_keys; ++key) {
      const level::StackCounters& s = shard.counters(key);
      const SizeClass c = heap::class_of(heap::home_at(key));
      Row r;
      r.set(Column::allocations, s.blocks_out.read());
      r.set(Column::frees, s.blocks_in.read());
      r.set(Column::refills, s.magazines_out.read());
      r.set(Column::spills, s.magazines_in.read());
      r.set(Column::held, less(r.get(Column::frees), r.get(Column::allocations)) * heap::class_size(c));
      rows[index(c)].add(r);
    }
  });
}

void count_slabs(const heap::Slabs& slabs, Rows& rows) noexcept {
  for (std::size_t i = 1; i < heap::home_class_count; ++i) {
    const heap::SlabCounters& s = slabs.counters(heap::home_at(i));
    Row r;
    r.set(Column::allocations, s.cut.read());
    r.set(Column::frees, s.returned.read());
    r.set(Column::refills, s.slabs_made.read());
    r.set(Column::spills, s.slabs_released.read());
    r.set(Column::purged, s.purged_bytes.read());
    rows[index(heap::class_of(heap::home_at(i)))].add(r);
  }
}

/// Large blocks in the slots.
struct Kept {
  std::uint64_t blocks = 0, bytes = 0, reused = 0;
};

void count_kept(const heap::Heap& h, const Slot& slot, Kept& kept) noexcept {
  kept.reused += __atomic_load_n(&slot.large_reused, __ATOMIC_RELAXED);
  for (const Word& word : slot.large) {
    const Word w = level::peek(word);
    if (!names_something(w)) continue;
    ++kept.blocks;
    kept.bytes += h.large().requested(level::large_of_word(w));
  }
}

Kept count_kept(heap::Heap& h) noexcept {
  Kept kept;
  h.core().for_each([&](const Slot& slot) { count_kept(h, slot, kept); });
  return kept;
}

// What a slot keeps was not counted as freed when it came there, nor as allocated when it left.
Row large_row(const heap::Heap& h, const Kept& kept) noexcept {
  Row r;
  r.set(Column::allocations, h.large().counters().allocated.read() + kept.reused);
  r.set(Column::frees, h.large().counters().freed.read() + kept.reused + kept.blocks);
  r.set(Column::refills, h.spans().counters().taken.read());
  r.set(Column::spills, h.spans().counters().given.read());
  r.set(Column::held, h.spans().dirty_bytes() + kept.bytes);
  r.set(Column::purged, h.spans().counters().purged_bytes.read());
  return r;
}

}  // namespace

void Row::add(const Row& other) noexcept {
  for (std::size_t i = 0; i < column_count; ++i) {
    value[i] += other.value[i];
    present[i] = present[i] || other.present[i];
  }
}

void Row::since(const Row& earlier) noexcept {
  for (std::size_t i = 0; i < column_count; ++i) {
    if (static_cast<Column>(i) != Column::held) value[i] -= min_of(value[i], earlier.value[i]);
  }
}

void take_snapshot(Snapshot& out) noexcept {
  heap::Heap& h = heap::heap;
  out = Snapshot{};
  if (!h.ready()) return;
  Held held;
  count_held(h, held);
  auto& core = out.by_class[static_cast<std::size_t>(Level::core)];
  auto& processor = out.by_class[static_cast<std::size_t>(Level::processor)];
  auto& global = out.by_class[static_cast<std::size_t>(Level::global)];
  count_depots(h, processor);
  count_slabs(h.slabs(), global);
  for (std::size_t c = 1; c < heap::class_count; ++c) {
    const SizeClass size_class{static_cast<std::uint8_t>(c)};
    const std::size_t size = heap::class_size(size_class);
    const std::uint64_t out_of_slabs = less(global[c].get(Column::allocations), global[c].get(Column::frees));
    const std::uint64_t live = less(out_of_slabs, processor[c].get(Column::held) / size + held.slots[c]);
    core[c] = core_row(h.levels().transfers(size_class), held, c, live, size);
    core[c].set(Column::aborts, aborts_of(c));
    out.live += live * size;
  }
  core[0].set(Column::aborts, aborts_of(0));
  const Kept kept = count_kept(h);
  out.by_class[static_cast<std::size_t>(Level::large)][0] = large_row(h, kept);
  out.live_large = less(h.large().counters().live_bytes.read(), kept.bytes);
  for (std::size_t l = 0; l < level_count; ++l) {
    for (const Row& r : out.by_class[l]) out.total[l].add(r);
    out.held += out.total[l].get(Column::held);
  }
  out.live += out.live_large;
  out.reserved = h.spans().window().extent();
  out.committed = h.spans().window().committed();
  for (const Row& r : out.total) out.purged += r.get(Column::purged);
  out.dirty = h.spans().dirty_bytes();
  for (std::size_t i = 0; i < os::metadata_count; ++i) out.metadata[i] = os::metadata_bytes(static_cast<os::Metadata>(i));
}

}  // namespace terrace::introspect
