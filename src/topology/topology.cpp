// SPDX-License-Identifier: MIT OR Apache-2.0
#include "topology/topology.h"

#include "base/bits.h"
#include "base/format.h"
#include "os/metadata.h"
#include "os/sysfs.h"

#include <string_view>

namespace terrace::topology {
namespace {

constexpr std::size_t path_size = 512;
constexpr std::size_t list_size = 64 * kib;  // "0,2,4,..." of ten thousand cpus
constexpr unsigned cache_indices = 8;

using CpuSet = std::array<bool, max_cpus>;

// What reading takes. Mapped for the while: the first malloc of a process may be that of a thread with the smallest stack.
struct Scratch {
  char text[list_size];
  char nodes[list_size];
  CpuSet online, known;
};

class Reader {
 public:
  Reader(const char* root, Scratch& memory) noexcept : scratch(memory), root_(root) {}

  /// The text of root + a + number + b, without the newline; empty when there is none.
  std::string_view read(std::string_view a, unsigned number, std::string_view b, unsigned second = 0,
                        std::string_view c = {}) noexcept {
    char path[path_size];
    Writer w(path, sizeof path);
    w.text(root_).text(a).decimal(number).text(b);
    if (!c.empty()) w.decimal(second).text(c);
    return read_path(w, path);
  }
  std::string_view read(std::string_view a) noexcept {
    char path[path_size];
    Writer w(path, sizeof path);
    w.text(root_).text(a);
    return read_path(w, path);
  }

  Scratch& scratch;

 private:
  std::string_view read_path(Writer& w, const char* path) noexcept {
    w.terminate();
    const long n = os::read_file(path, scratch.text, sizeof scratch.text);
    std::string_view text(scratch.text, n > 0 ? static_cast<std::size_t>(n) : 0);
    while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.remove_suffix(1);
    return text;
  }

  const char* root_;
};

bool parse_number(std::string_view& text, unsigned& out) noexcept {
  if (text.empty() || text.front() < '0' || text.front() > '9') return false;
  std::uint64_t v = 0;
  while (!text.empty() && text.front() >= '0' && text.front() <= '9') {
    v = v * 10 + static_cast<unsigned>(text.front() - '0');
    if (v > 1U << 20) return false;
    text.remove_prefix(1);
  }
  out = static_cast<unsigned>(v);
  return true;
}

// "0-3,8,10-11". False when it is anything else; then `each` may have seen some of it.
template <class Each>
bool parse_list(std::string_view text, Each each) noexcept {
  if (text.empty()) return false;
  for (;;) {
    unsigned first = 0, last = 0;
    if (!parse_number(text, first)) return false;
    last = first;
    if (text.starts_with('-')) {
      text.remove_prefix(1);
      if (!parse_number(text, last) || last < first) return false;
    }
    for (unsigned cpu = first; cpu <= last; ++cpu) each(cpu);
    if (text.empty()) return true;
    if (!text.starts_with(',')) return false;
    text.remove_prefix(1);
  }
}

unsigned length_of(std::string_view list) noexcept {
  unsigned length = 0;
  return parse_list(list, [&](unsigned) { ++length; }) ? length : 0;
}

constexpr std::string_view cpu_prefix = "/devices/system/cpu/cpu";

struct Cache {
  unsigned level = 0, index = 0;
};

// The highest level that holds data.
Cache last_cache(Reader& reader, unsigned cpu) noexcept {
  Cache best;
  for (unsigned i = 0; i < cache_indices; ++i) {
    unsigned level = 0;
    std::string_view text = reader.read(cpu_prefix, cpu, "/cache/index", i, "/level");
    if (!parse_number(text, level) || level <= best.level) continue;
    if (reader.read(cpu_prefix, cpu, "/cache/index", i, "/type") == "Instruction") continue;
    best = {.level = level, .index = i};
  }
  return best;
}

// Level 2 is the highest that is described and each core's own: what they share is not described, and a depot per core is none.
bool is_private_level_2(Reader& reader, unsigned cpu) noexcept {
  const Cache last = last_cache(reader, cpu);
  return last.level == 2 && length_of(reader.read(cpu_prefix, cpu, "/cache/index", last.index, "/shared_cpu_list")) <=
                                length_of(reader.read(cpu_prefix, cpu, "/topology/core_cpus_list"));
}

// The list of cpus that share the last-level cache of `cpu`. If there is none above `above`, the package is the best guess.
std::string_view llc_list(Reader& reader, unsigned cpu, unsigned above) noexcept {
  const Cache last = last_cache(reader, cpu);
  if (last.level <= above) return reader.read(cpu_prefix, cpu, "/topology/package_cpus_list");
  return reader.read(cpu_prefix, cpu, "/cache/index", last.index, "/shared_cpu_list");
}

void read_llcs(Reader& reader, Topology& out) noexcept {
  // Every process that starts comes through here, and sysfs is slow: where one level-3 cache serves all cpus, one file is
  // enough.
  constexpr unsigned usual_index_of_level_3 = 3;
  if (length_of(reader.read(cpu_prefix, 0, "/cache/index", usual_index_of_level_3, "/shared_cpu_list")) >= out.cpu_count)
    return;
  // Most possible cpus of a virtual machine may never come; only those that are online describe anything.
  CpuSet& online = reader.scratch.online;
  unsigned online_count = 0;
  const bool told = parse_list(reader.read("/devices/system/cpu/online"), [&](unsigned cpu) {
    if (cpu < max_cpus) online[cpu] = true;
    ++online_count;
  });
  // A level 2 that is private counts as little as a level 1. One cpu decides for all: they must be told by one rule, and to ask
  // each takes a dozen files per cpu at every start. If its neighbours sleep it may be wrong, and there are fewer depots.
  unsigned first = 0;
  while (told && first + 1 < min_of(out.cpu_count, max_cpus) && !online[first]) ++first;
  const unsigned above = is_private_level_2(reader, first) ? 2 : 1;
  if (length_of(llc_list(reader, 0, above)) >= (told ? online_count : out.cpu_count)) return;
  CpuSet& known = reader.scratch.known;
  unsigned count = 0;
  out.llc.fill(0);
  for (unsigned cpu = 0; cpu < min_of(out.cpu_count, max_cpus); ++cpu) {
    if (known[cpu] || (told && !online[cpu])) continue;
    bool any = false;
    const auto id = static_cast<std::uint8_t>(count % max_llcs);
    parse_list(llc_list(reader, cpu, above), [&](unsigned member) {
      if (member >= max_cpus) return;
      known[member] = true;
      out.llc[member] = id;
      any = true;
    });
    if (any) ++count;  // an offline cpu describes nothing: it stays with LLC 0 until it is known better
  }
  out.llc_count = count == 0 ? 1 : (count < max_llcs ? count : max_llcs);
}

void read_nodes(Reader& reader, Topology& out) noexcept {
  unsigned count = 0;
  const std::string_view nodes = reader.read("/devices/system/node/online");
  if (nodes.empty() || nodes == "0") return;
  Writer copy(reader.scratch.nodes, sizeof reader.scratch.nodes);
  copy.text(nodes);
  parse_list(copy.written(), [&](unsigned node) {
    parse_list(reader.read("/devices/system/node/node", node, "/cpulist"), [&](unsigned cpu) {
      if (cpu < max_cpus) out.node[cpu] = static_cast<std::uint8_t>(count % 256);
    });
    ++count;
  });
  out.node_count = count == 0 ? 1 : count;
}

// cpu 0 is always online. What says nothing about its core is taken for one by itself.
void number_core(Reader& reader, unsigned cpu, CpuSet& known, Cores& out) noexcept {
  const auto id = static_cast<std::uint16_t>(out.count++);
  known[cpu] = true;
  out.core[cpu] = id;
  parse_list(reader.read(cpu_prefix, cpu, "/topology/core_cpus_list"), [&](unsigned member) {
    if (member >= max_cpus) return;
    known[member] = true;
    out.core[member] = id;
  });
}

}  // namespace

void read_cores(Cores& out, const Topology& topology, const char* sysfs_root) noexcept {
  out.count = out.cpu_count = 0;
  out.core.fill(0);
  const os::Scratch<Scratch> memory;
  if (memory.get() == nullptr) {
    out.count = out.cpu_count = 1;
    return;
  }
  Reader reader(sysfs_root, *memory.get());
  CpuSet& known = memory.get()->known;
  CpuSet& online = memory.get()->online;
  const bool told = parse_list(reader.read("/devices/system/cpu/online"), [&](unsigned cpu) {
    if (cpu < max_cpus) online[cpu] = true;
  });
  for (unsigned cpu = 0; cpu < min_of(topology.cpu_count, max_cpus); ++cpu) {
    if (told && !online[cpu]) continue;
    ++out.cpu_count;
    if (!known[cpu]) number_core(reader, cpu, known, out);
  }
  if (out.count == 0) out.count = out.cpu_count = 1;
}

void read(Topology& out, const char* sysfs_root) noexcept {
  out.cpu_count = out.llc_count = out.node_count = 1;
  const os::Scratch<Scratch> memory;
  if (memory.get() == nullptr) return;
  Reader reader(sysfs_root, *memory.get());
  unsigned highest = 0;
  parse_list(reader.read("/devices/system/cpu/possible"), [&](unsigned cpu) { highest = cpu > highest ? cpu : highest; });
  out.cpu_count = min_of(highest + 1, most_slots);
  if (out.cpu_count == 1) return;
  read_llcs(reader, out);
  if (out.llc_count > 1) read_nodes(reader, out);
}

}  // namespace terrace::topology
