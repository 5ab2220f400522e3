// SPDX-License-Identifier: MIT OR Apache-2.0
#include "introspect/statistics.h"

#include "base/format.h"
#include "os/io.h"
#include "os/metadata.h"
#include "os/sysfs.h"

namespace terrace::introspect {

constexpr std::array<ColumnInfo, column_count> columns{{
    {Column::allocations, "allocations", "allocations", "blocks", "monotonic",
     "Blocks that the level handed down: to the program at the core level, to the level below elsewhere."},
    {Column::frees, "frees", "frees", "blocks", "monotonic", "Blocks that the level took back from below."},
    {Column::refills, "refills", "refills", "events", "monotonic",
     "Times the level was asked by the one below: magazines taken (core, processor), slabs made (global), spans taken "
     "(large)."},
    {Column::spills, "spills", "spills", "events", "monotonic",
     "Times the level below gave back: magazines (core, processor), slabs released (global), spans given (large)."},
    {Column::foreign, "foreign", "foreign", "blocks", "monotonic",
     "Blocks that went into or came out of a buffer of another processor or home."},
    {Column::aborts, "aborts", "aborts", "events", "monotonic",
     "Restartable sequences that the kernel interrupted and that began again."},
    {Column::held, "held", "held", "bytes", "gauge", "Free memory that the level holds."},
    {Column::purged, "purged", "purged", "bytes", "monotonic", "Memory given back to the system."},
}};

namespace {

consteval bool columns_in_order() {
  for (std::size_t i = 0; i < column_count; ++i) {
    if (static_cast<std::size_t>(columns[i].column) != i) return false;
  }
  return true;
}
static_assert(columns_in_order());

// By os::Metadata.
constexpr std::array<std::string_view, os::metadata_count> metadata_names{"spans",  "levels", "checks", "statistics",
                                                                          "arenas", "logs",   "profile"};

std::uint64_t metadata_of(const Snapshot& s) noexcept {
  std::uint64_t sum = 0;
  for (const std::uint64_t bytes : s.metadata) sum += bytes;
  return sum;
}

constexpr std::size_t command_size = 64;

std::string_view command(char (&buf)[command_size]) noexcept {
  const long n = os::read_file("/proc/self/comm", buf, sizeof buf);
  std::string_view name(buf, n > 0 ? static_cast<std::size_t>(n) : 0);
  if (!name.empty() && name.back() == '\n') name.remove_suffix(1);
  return name;
}

void key(Writer& w, std::string_view name) noexcept { w.json_string(name).put(':'); }

void write_row(Writer& w, const Row& r) noexcept {
  w.put('{');
  bool first = true;
  for (std::size_t i = 0; i < column_count; ++i) {
    if (!r.present[i]) continue;
    if (!first) w.put(',');
    first = false;
    key(w, columns[i].key);
    w.decimal(r.value[i]);
  }
  w.put('}');
}

void write_head(Writer& w) noexcept {
  char buf[command_size];
  const heap::Heap& h = heap::heap;
  w.text("{\"schema\":1,\"version\":").json_string(TERRACE_VERSION);
  w.text(",\"pid\":").decimal(static_cast<std::uint64_t>(os::process_id()));
  w.text(",\"command\":").json_string(command(buf));
  w.text(",\"rung\":").json_string(percpu::name_of(h.ladder().rung));
  w.text(",\"rung_reason\":").json_string(h.ladder().reason);
  w.text(",\"valid_after_calls\":").text(h.ladder().valid_after_calls ? "true" : "false");
  w.text(",\"slots\":").decimal(heap::heap.core().slot_count());
  w.text(",\"page_size\":").decimal(os::page_size());
  w.text(",\"placement\":").json_string(heap::name_of(h.options().placement));
  w.text(",\"budget\":").decimal(heap::heap.budget());
}

void write_columns(Writer& w) noexcept {
  w.text(",\"columns\":[");
  for (std::size_t i = 0; i < column_count; ++i) {
    const ColumnInfo& c = columns[i];
    if (i != 0) w.put(',');
    w.text("{\"key\":").json_string(c.key).text(",\"title\":").json_string(c.title);
    w.text(",\"unit\":").json_string(c.unit).text(",\"kind\":").json_string(c.kind);
    w.text(",\"help\":").json_string(c.help).put('}');
  }
  w.put(']');
}

bool used(const Row& r) noexcept { return r.get(Column::allocations) != 0 || r.get(Column::held) != 0; }

void write_classes(Writer& w, const Snapshot& s) noexcept {
  w.text(",\"classes\":[");
  bool first = true;
  for (std::size_t c = 1; c < heap::class_count; ++c) {
    if (!used(s.by_class[static_cast<std::size_t>(Level::core)][c]) &&
        !used(s.by_class[static_cast<std::size_t>(Level::global)][c])) {
      continue;
    }
    if (!first) w.put(',');
    first = false;
    w.text("{\"class\":").decimal(c).text(",\"size\":").decimal(heap::class_sizes.bytes[c]).text(",\"levels\":{");
    for (std::size_t l = 0; l < static_cast<std::size_t>(Level::large); ++l) {
      if (l != 0) w.put(',');
      key(w, name_of(static_cast<Level>(l)));
      write_row(w, s.by_class[l][c]);
    }
    w.text("}}");
  }
  w.put(']');
}

void write_memory(Writer& w, const Snapshot& s) noexcept {
  w.text(",\"memory\":{\"reserved\":").decimal(s.reserved).text(",\"committed\":").decimal(s.committed);
  w.text(",\"live\":").decimal(s.live).text(",\"held\":").decimal(s.held);
  w.text(",\"dirty\":").decimal(s.dirty).text(",\"purged\":").decimal(s.purged);
  w.text(",\"metadata\":").decimal(metadata_of(s));
  for (std::size_t i = 0; i < os::metadata_count; ++i) {
    w.text(",\"metadata_").text(metadata_names[i]).text("\":").decimal(s.metadata[i]);
  }
  w.put('}');
}

}  // namespace

std::string_view name_of(Level level) noexcept {
  constexpr std::string_view names[] = {"core", "processor", "global", "large"};
  // On the rung without cpu numbers the same words belong to threads.
  if (level == Level::core && heap::heap.core().rung() == percpu::Rung::thread) return "thread";
  return names[static_cast<std::size_t>(level)];
}

std::size_t write_json(const Snapshot& s, char* buf, std::size_t size) noexcept {
  Writer w(buf, size);
  write_head(w);
  write_columns(w);
  w.text(",\"levels\":[");
  for (std::size_t l = 0; l < level_count; ++l) {
    if (l != 0) w.put(',');
    w.text("{\"level\":").json_string(name_of(static_cast<Level>(l))).text(",\"values\":");
    write_row(w, s.total[l]);
    w.put('}');
  }
  w.put(']');
  write_classes(w, s);
  write_memory(w, s);
  w.text("}\n");
  return w.length();
}

std::size_t write_text(const Snapshot& s, char* buf, std::size_t size) noexcept {
  constexpr std::size_t width = 14;
  Writer w(buf, size);
  const heap::Heap& h = heap::heap;
  w.text("Terrace " TERRACE_VERSION ", rung ").text(percpu::name_of(h.ladder().rung)).text(" (");
  w.text(h.ladder().reason).text("), ").decimal(heap::heap.core().slot_count()).text(" slots\n");
  w.padded("level", 10);
  for (const ColumnInfo& c : columns) w.padded(c.title, width);
  w.put('\n');
  for (std::size_t l = 0; l < level_count; ++l) {
    w.padded(name_of(static_cast<Level>(l)), 10);
    for (std::size_t i = 0; i < column_count; ++i) {
      if (s.total[l].present[i]) {
        w.decimal(s.total[l].value[i], width);
      } else {
        w.padded("-", width);
      }
    }
    w.put('\n');
  }
  w.text("bytes: live ").decimal(s.live).text(", held ").decimal(s.held).text(", dirty ").decimal(s.dirty);
  w.text(", purged ").decimal(s.purged).text(", mapped ").decimal(s.committed);
  w.text(", metadata ").decimal(metadata_of(s)).put('\n');
  return w.length();
}

}  // namespace terrace::introspect
