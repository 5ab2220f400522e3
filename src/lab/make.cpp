// SPDX-License-Identifier: MIT OR Apache-2.0
// A configuration is checked and becomes a heap.
#include "lab/heap.h"
#include "os/possible_cpus.h"
#include "percpu/ladder.h"
#include "percpu/transaction.h"

#include <new>

namespace terrace::lab {
namespace {

// On rung cpu_id, what emitted code finds in a thread that libc did not register, -1 or -2; these buffers are empty for ever.
constexpr unsigned buffers_before_first = 2;
constexpr std::size_t default_min_part = 8, default_growth = 64;
constexpr std::size_t least_alignment = 8, most_alignment = 4096;

std::size_t min_fill_of(const terrace_lab_config& config) noexcept {
  return config.min_fill != 0 ? config.min_fill : config.alignment;
}
// LAB I5
std::size_t reserve_of(const terrace_lab_config& config) noexcept {
  return min_fill_of(config) > config.alignment ? min_fill_of(config) : 0;
}

// Zeros of the configuration replaced by what they stand for.
terrace_lab_level_config completed(terrace_lab_level_config c, const terrace_lab_config& config) noexcept {
  if (c.min_size == 0) {
    c.min_size =
        max_of(max_of(round_up(c.size / default_min_part, config.alignment), config.alignment), 2 * reserve_of(config));
  }
  if (c.max_size == 0) c.max_size = c.sizing == TERRACE_LAB_FIXED ? c.size : c.size * default_growth;
  if (c.sizing == TERRACE_LAB_FIXED) c.max_size = c.size;
  return c;
}

bool is_valid(int level, const terrace_lab_level_config& given, const terrace_lab_config& config) noexcept {
  if (given.size == 0) return true;
  const terrace_lab_level_config c = completed(given, config);
  if (c.size > ~std::size_t{0} / 2 / default_growth) return false;
  for (const std::size_t bytes : {c.size, c.min_size, c.max_size}) {
    if (bytes % config.alignment != 0) return false;
  }
  if (c.min_size > c.size || c.size > c.max_size || c.min_size < 2 * reserve_of(config)) return false;
  if (c.sizing < TERRACE_LAB_FIXED || c.sizing > TERRACE_LAB_DOUBLING) return false;
  if (c.sizing != TERRACE_LAB_FIXED && config.young_bytes == 0) return false;
  return c.sync == TERRACE_LAB_CAS || (c.sync == TERRACE_LAB_RESTARTABLE && level == TERRACE_LAB_CORE);
}

bool has_valid_space(const terrace_lab_config& config) noexcept {
  if (config.source == nullptr) return false;
  if (!is_power_of_two(config.alignment) || config.alignment < least_alignment || config.alignment > most_alignment)
    return false;
  if (config.min_fill % config.alignment != 0 || config.min_fill > most_alignment) return false;
  if (config.boundary != 0 && (!is_power_of_two(config.boundary) || config.boundary < config.alignment)) return false;
  if (config.stop_permille > 1000 || config.buffers_permille > 1000) return false;
  if (config.stop_permille != 0 && config.available == nullptr) return false;
  const bool asks_for_part =
      config.stop_permille != 0 || config.buffers_permille != 0 || config.association == TERRACE_LAB_AUTO;
  return !asks_for_part || config.young_bytes != 0;
}

bool is_valid(const terrace_lab_config& config) noexcept {
  if (config.abi != TERRACE_LAB_ABI || !has_valid_space(config)) return false;
  if (config.association < TERRACE_LAB_BY_THREAD || config.association > TERRACE_LAB_AUTO) return false;
  if (config.association != TERRACE_LAB_BY_THREAD && config.levels[TERRACE_LAB_CORE].size == 0) return false;
  for (int l = 0; l < TERRACE_LAB_LEVELS; ++l) {
    if (!is_valid(l, config.levels[l], config)) return false;
  }
  return true;
}

unsigned count_of(int level, const terrace_lab_level_config& c, const topology::Topology& t,
                  const topology::Cores& cores) noexcept {
  if (c.size == 0) return 0;
  switch (level) {
    case TERRACE_LAB_CORE: return c.sync == TERRACE_LAB_RESTARTABLE ? percpu::slot_count() : cores.count;
    case TERRACE_LAB_PROCESSOR: return t.llc_count;
    case TERRACE_LAB_NODE: return t.node_count;
    default: return 0;
  }
}

Buffer* new_buffers(Buffer* memory, unsigned count) noexcept {
  for (unsigned i = 0; i < count; ++i) new (memory + i) Buffer();
  return memory;
}

// No count of a level is ever larger, whichever cpus are online when the heap is made.
std::size_t most_of(const terrace_lab_level_config& c, const topology::Topology& t) noexcept {
  return c.sync == TERRACE_LAB_RESTARTABLE ? percpu::slot_count() : max_of(t.cpu_count, t.node_count);
}

}  // namespace

std::size_t Heap::bytes(const terrace_lab_config& config, const char* sysfs_root) noexcept {
  if (!is_valid(config)) return 0;
  topology::Topology t;
  topology::read(t, sysfs_root);
  std::size_t buffers = 0;
  for (int l = TERRACE_LAB_CORE; l < TERRACE_LAB_LEVELS; ++l) {
    if (config.levels[l].size != 0) buffers += most_of(config.levels[l], t) + buffers_before_first;
  }
  return round_up(sizeof(Heap), alignof(Buffer)) + buffers * sizeof(Buffer);
}

Heap* Heap::make(void* memory, const terrace_lab_config& config, const char* sysfs_root) noexcept {
  if (!is_valid(config)) return nullptr;
  auto* const heap = new (memory) Heap();
  heap->open(config, static_cast<std::byte*>(memory) + round_up(sizeof(Heap), alignof(Buffer)), sysfs_root);
  return heap;
}

void Heap::open(const terrace_lab_config& config, std::byte* memory, const char* sysfs_root) noexcept {
  config_ = config;
  young_bytes_ = config.young_bytes;
  min_fill_ = min_fill_of(config);
  reserve_ = reserve_of(config);
  boundary_ = config.boundary != 0 ? config.boundary : std::uint64_t{1} << 63;
  by_core_ = config.association == TERRACE_LAB_BY_CORE;
  allocating_threads_ = 1;
  topology::read(topology_, sysfs_root);
  topology::read_cores(cores_, topology_, sysfs_root);
  const percpu::Ladder& ladder = percpu::ladder();
  has_area_ = percpu::has_sequences(ladder.rung) && !ladder.area_is_ours;
  area_ = ladder.area;
  sections_end_in_calls_ = ladder.valid_after_calls;
  locator_.open(ladder, topology_);
  auto* next = reinterpret_cast<Buffer*>(memory);
  for (int l = 0; l < TERRACE_LAB_LEVELS; ++l) {
    Level& level = levels_[l];
    level.config = config.levels[l];
    if (level.config.size == 0) continue;
    level.config = completed(level.config, config);
    level.bounds = {.least = level.config.min_size, .most = level.config.max_size, .alignment = config.alignment};
    level.count = count_of(l, level.config, topology_, cores_);
    if (level.count == 0) continue;
    level.buffers = new_buffers(next, level.count + buffers_before_first) + buffers_before_first;
    next = level.buffers + level.count;
    for (unsigned i = 0; i < level.count; ++i) set_size(level.buffers[i], level.config.size);
    if (level.restartable()) slots_.open(ladder, level.buffers, level.count);
  }
  apply_limit();
}

void Heap::read_attributes(terrace_lab_attributes& out) const noexcept {
  const bool by_thread = exists(TERRACE_LAB_THREAD) && config_.association != TERRACE_LAB_BY_CORE;
  const bool from_core = exists(TERRACE_LAB_CORE) && config_.association != TERRACE_LAB_BY_THREAD;
  const std::size_t largest = max_of(by_thread ? levels_[TERRACE_LAB_THREAD].config.max_size : 0,
                                     from_core ? levels_[TERRACE_LAB_CORE].config.max_size : 0);
  out = {.abi = TERRACE_LAB_ABI,
         .buffer_shift = TERRACE_LAB_BUFFER_SHIFT,
         .granule = config_.alignment,
         .min_fill = min_fill_,
         .large_threshold = largest < reserve_ ? 0 : largest - reserve_,
         .top_offset = TERRACE_LAB_TOP_OFFSET,
         .end_offset = TERRACE_LAB_END_OFFSET,
         .active_offset = TERRACE_LAB_ACTIVE_OFFSET,
         .buffer_top_offset = TERRACE_LAB_BUFFER_TOP_OFFSET,
         .buffer_end_offset = TERRACE_LAB_BUFFER_END_OFFSET};
}

}  // namespace terrace::lab
