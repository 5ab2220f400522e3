// SPDX-License-Identifier: MIT OR Apache-2.0
#include "base/format.h"
#include "base/report.h"
#include "introspect/path.h"
#include "introspect/statistics.h"
#include "os/environment.h"
#include "os/io.h"
#include "os/metadata.h"

namespace terrace::introspect {
namespace {

constexpr std::size_t report_size = 256 * kib;  // all classes at well below 1 KiB each

Snapshot* inherited = nullptr;  // what the parent had counted when this process was forked

int report_fd = os::standard_error;
bool wanted_at_start = false;  // a report was asked for when the process began

void subtract_inherited(Snapshot& s) noexcept {
  if (inherited == nullptr) return;
  for (std::size_t l = 0; l < level_count; ++l) {
    s.total[l].since(inherited->total[l]);
    for (std::size_t c = 0; c < heap::max_size_classes; ++c) s.by_class[l][c].since(inherited->by_class[l][c]);
  }
  s.purged -= min_of(s.purged, inherited->purged);
}

void write_to(int fd, bool json) noexcept {
  struct Report {
    Snapshot snapshot;
    char text[report_size];
  };
  const os::Scratch<Report> memory;  // not allocated: the report must not change what it reports
  Report* const r = memory.get();
  if (r == nullptr) return;
  take_snapshot(r->snapshot);
  subtract_inherited(r->snapshot);
  const std::size_t n = json ? write_json(r->snapshot, r->text, report_size) : write_text(r->snapshot, r->text, report_size);
  os::write_all(fd, {r->text, min_of(n, report_size)});
}

}  // namespace

void forget_parent() noexcept {
  if (!wanted_at_start) return;
  if (inherited == nullptr) inherited = os::map_metadata<Snapshot>(os::Metadata::statistics, 1);
  if (inherited != nullptr) take_snapshot(*inherited);
}

void prepare_report() noexcept {
  const bool on_standard_error = os::environment("TERRACE_STATS") != nullptr;
  if (on_standard_error) report_fd = os::keep_open(os::standard_error);
  wanted_at_start = on_standard_error || os::environment("TERRACE_STATS_FILE") != nullptr;
}

void report_at_exit() noexcept {
  if (const char* pattern = os::environment("TERRACE_STATS_FILE")) {
    char path[path_size];
    expand(pattern, path);
    const int fd = os::create_file(path);
    if (fd < 0) {
      warn("TERRACE_STATS_FILE", path, "can not be written");
      return;
    }
    write_to(fd, true);
    os::close_file(fd);
  }
  if (const char* form = os::environment("TERRACE_STATS")) {
    const std::string_view f(form);
    if (f == "text" || f == "json") {
      write_to(report_fd, f == "json");
    } else {
      warn("TERRACE_STATS", form, "neither text nor json; ignored");
    }
  }
}

}  // namespace terrace::introspect
