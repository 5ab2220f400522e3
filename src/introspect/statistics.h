// SPDX-License-Identifier: MIT OR Apache-2.0
// A snapshot of all counters. Text, JSON and documentation come from one table of columns.
#pragma once

#include "heap/heap.h"
#include "os/metadata.h"

#include <string_view>

namespace terrace::introspect {

enum class Column : std::uint8_t { allocations, frees, refills, spills, foreign, aborts, held, purged, count_ };
enum class Level : std::uint8_t { core, processor, global, large, count_ };

struct ColumnInfo {
  Column column;
  std::string_view key, title, unit, kind, help;
};
inline constexpr std::size_t column_count = static_cast<std::size_t>(Column::count_);
inline constexpr std::size_t level_count = static_cast<std::size_t>(Level::count_);
extern const std::array<ColumnInfo, column_count> columns;

/// The numbers of one level, for one class or for all. A column that means nothing at the level is absent.
struct Row {
  std::array<std::uint64_t, column_count> value{};
  std::array<bool, column_count> present{};
  void set(Column c, std::uint64_t v) noexcept {
    value[static_cast<std::size_t>(c)] = v;
    present[static_cast<std::size_t>(c)] = true;
  }
  std::uint64_t get(Column c) const noexcept { return value[static_cast<std::size_t>(c)]; }
  void add(const Row& other) noexcept;
  /// Takes the monotonic columns of an earlier row away.
  void since(const Row& earlier) noexcept;
};

struct Snapshot {
  std::array<std::array<Row, heap::max_size_classes>, level_count> by_class{};  // [level][class]; class 0: large blocks
  std::array<Row, level_count> total{};
  std::uint64_t reserved = 0, committed = 0, live = 0, held = 0, purged = 0, dirty = 0;
  std::uint64_t live_large = 0;  // of `live`, in large blocks
  std::array<std::uint64_t, os::metadata_count> metadata{};
};

/// Exact when nobody allocates meanwhile; otherwise each number was true at some recent moment.
/// `out` is large: not for small stacks.
void take_snapshot(Snapshot& out) noexcept;

std::string_view name_of(Level level) noexcept;

/// Both return the length of the whole text; what does not fit is cut.
std::size_t write_json(const Snapshot& s, char* buf, std::size_t size) noexcept;
std::size_t write_text(const Snapshot& s, char* buf, std::size_t size) noexcept;

/// In a forked child: what its parent did until now is not to be reported a second time. Nothing is done unless a report is
/// wanted.
void forget_parent() noexcept;

/// At the start: keeps standard error open for a report that is wanted, since many programs close theirs at the end.
void prepare_report() noexcept;
/// What TERRACE_STATS and TERRACE_STATS_FILE ask for, done at normal exit.
void report_at_exit() noexcept;

}  // namespace terrace::introspect
