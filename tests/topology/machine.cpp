// SPDX-License-Identifier: MIT OR Apache-2.0
#include "machine.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <system_error>
#include <unistd.h>

namespace terrace::topology {
namespace {

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(separator), text.size());
    if (end != 0) parts.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

Cpus both(const Cpus& a, const Cpus& b) {
  Cpus result;
  std::ranges::set_intersection(a, b, std::inserter(result, result.end()));
  return result;
}

// The group with this cpu in it; null: none.
const Cpus* group_with(const Groups& groups, unsigned cpu) {
  const auto found = std::ranges::find_if(groups, [=](const Cpus& g) { return g.contains(cpu); });
  return found == groups.end() ? nullptr : &*found;
}

unsigned number(const std::string& text) {
  std::size_t used = 0;
  const unsigned long n = std::stoul(text, &used);
  if (used != text.size()) throw std::invalid_argument("not a number: " + text);
  return static_cast<unsigned>(n);
}

// Some disks take a millisecond for a directory, and there will be thousands.
std::filesystem::path place() {
  const char* const in_memory = "/dev/shm";
  if (std::getenv("TMPDIR") == nullptr && access(in_memory, W_OK) == 0) return in_memory;
  return std::filesystem::temp_directory_path();
}

template <class GroupOf>
std::string by_number(const Topology& t, unsigned count, GroupOf group_of) {
  Groups groups(count);
  for (unsigned cpu = 0; cpu < t.cpu_count; ++cpu) groups.at(group_of(CpuId{cpu})).insert(cpu);
  return list_of(groups);
}

}  // namespace

Cpus cpus_of(std::string_view list) {
  Cpus cpus;
  for (const std::string& range : split(list, ',')) {
    const std::size_t dash = range.find('-');
    const unsigned first = number(range.substr(0, dash));
    const unsigned last = dash == std::string::npos ? first : number(range.substr(dash + 1));
    for (unsigned cpu = first; cpu <= last; ++cpu) cpus.insert(cpus.end(), cpu);
  }
  return cpus;
}

std::string list_of(const Cpus& cpus) {
  std::string text;
  for (auto at = cpus.begin(); at != cpus.end();) {
    const unsigned first = *at;
    unsigned last = first;
    while (++at != cpus.end() && *at == last + 1) last = *at;
    if (!text.empty()) text += ',';
    text += std::to_string(first);
    if (last != first) text.append(1, '-').append(std::to_string(last));
  }
  return text;
}

std::string list_of(const Groups& groups) {
  std::string text;
  for (const Cpus& g : groups) {
    if (&g != groups.data()) text += ' ';
    text += list_of(g);
  }
  return text;
}

std::string map_of(const Cpus& cpus) {
  std::vector<std::uint32_t> words(cpus.empty() ? 1 : *cpus.rbegin() / 32 + 1);
  for (const unsigned cpu : cpus) words[cpu / 32] |= std::uint32_t{1} << cpu % 32;
  std::string text;
  for (std::size_t i = words.size(); i-- > 0;) {
    char word[12];
    std::snprintf(word, sizeof word, "%08x%s", words[i], i != 0 ? "," : "");
    text += word;
  }
  return text;
}

Machine::Machine(std::string_view description) {
  Cpus offline;
  for (const std::string& statement : split(description, ';')) {
    const std::size_t start = statement.find_first_not_of(' ');
    const std::size_t end = std::min(statement.find(' ', start), statement.size());
    const std::string word = statement.substr(start, end - start);
    const std::string rest = statement.substr(end);
    if (word == "cpus") {
      possible = cpus_of(split(rest, ' ').at(0));
    } else if (word == "offline") {
      offline = cpus_of(split(rest, ' ').at(0));
    } else if (word == "core") {
      cores = groups_of(rest);
    } else if (word == "package") {
      packages = groups_of(rest);
    } else if (word == "node") {
      nodes = groups_of(rest);
    } else if (word.size() >= 2 && word[0] == 'L') {
      caches.push_back({.name = word, .groups = groups_of(rest)});
    } else {
      throw std::invalid_argument("unknown word: " + word);
    }
  }
  if (cores.empty()) cores = groups_of("each");
  if (packages.empty()) packages = {possible};
  std::ranges::set_difference(possible, offline, std::inserter(online, online.end()));
}

Groups Machine::groups_of(std::string_view words) const {
  Groups groups;
  for (const std::string& word : split(words, ' ')) {
    if (word == "all") {
      groups.push_back(possible);
    } else if (word == "each") {
      for (const unsigned cpu : possible) groups.push_back({cpu});
    } else if (word == "core") {
      groups = cores;
    } else if (word == "package") {
      groups = packages;
    } else if (word[0] == 'L') {
      groups = std::ranges::find(caches, word, &Cache::name)->groups;
    } else {
      groups.push_back(cpus_of(word));
    }
  }
  return groups;
}

FakeRoot::FakeRoot() {
  std::string pattern = (place() / "terrace-topology-XXXXXX").string();
  if (mkdtemp(pattern.data()) == nullptr) throw std::system_error(errno, std::generic_category(), pattern);
  directory_ = pattern;
}

FakeRoot::~FakeRoot() {
  std::error_code ignored;
  std::filesystem::remove_all(directory_, ignored);
}

void FakeRoot::put(const std::string& path, std::string_view text) {
  const std::filesystem::path file = sys() / path;
  std::filesystem::create_directories(file.parent_path());
  std::ofstream(file, std::ios::binary) << text;
}

void FakeRoot::put_shared(const std::string& path, std::string_view list_name, std::string_view map_name, const Cpus& cpus,
                          Files files) {
  put(path + std::string(list_name), list_of(cpus) + "\n");
  if (files == Files::all) put(path + std::string(map_name), map_of(cpus) + "\n");
}

void FakeRoot::describe_cpu(const Machine& machine, unsigned cpu, Files files) {
  const std::string own = cpu_file("cpu" + std::to_string(cpu));
  const Cpus* const package = group_with(machine.packages, cpu);
  if (package != nullptr) {
    put_shared(own + "/topology/", "package_cpus_list", "package_cpus", both(*package, machine.online), files);
  }
  const Cpus* const core = group_with(machine.cores, cpu);
  const Cpus threads = both(core != nullptr ? *core : Cpus{cpu}, machine.online);
  put_shared(own + "/topology/", "core_cpus_list", "core_cpus", threads, files);
  if (files == Files::all) {
    put(own + "/topology/core_id", std::to_string(*threads.begin()) + "\n");
    put(own + "/topology/physical_package_id",
        std::to_string(package != nullptr ? package - machine.packages.data() : 0) + "\n");
  }
  unsigned index = 0;
  for (const Machine::Cache& cache : machine.caches) {
    const Cpus* const group = group_with(cache.groups, cpu);
    if (group == nullptr) continue;
    const std::string at = own + "/cache/index" + std::to_string(index++) + "/";
    put(at + "level", std::to_string(cache.level()) + "\n");
    put(at + "type", cache.type() + "\n");
    put_shared(at, "shared_cpu_list", "shared_cpu_map", both(*group, machine.online), files);
  }
}

void FakeRoot::describe(const Machine& machine, Files files) {
  put(cpu_file("possible"), list_of(machine.possible) + "\n");
  put(cpu_file("present"), list_of(machine.possible) + "\n");
  put(cpu_file("online"), list_of(machine.online) + "\n");
  for (const unsigned cpu : machine.online) describe_cpu(machine, cpu, files);
  if (machine.nodes.empty()) return;
  Cpus numbers;
  for (unsigned node = 0; node < machine.nodes.size(); ++node) {
    numbers.insert(node);
    put_shared("devices/system/node/node" + std::to_string(node) + "/", "cpulist", "cpumap",
               both(machine.nodes[node], machine.online), files);
  }
  put("devices/system/node/online", list_of(numbers) + "\n");
}

Topology FakeRoot::read() const {
  Topology t;
  topology::read(t, sys().c_str());
  return t;
}

Topology topology_of(std::string_view description) {
  FakeRoot root;
  root.describe(Machine(description));
  return root.read();
}

std::string llcs(const Topology& t) {
  return by_number(t, t.llc_count, [&](CpuId cpu) { return index(t.llc_of(cpu)); });
}
std::string nodes(const Topology& t) {
  return by_number(t, t.node_count, [&](CpuId cpu) { return t.node_of(cpu); });
}

std::string broken_invariant(const Topology& t) {
  constexpr unsigned beyond_all = 3 * max_cpus;
  if (t.cpu_count < 1 || t.cpu_count > most_slots) return "cpu_count is " + std::to_string(t.cpu_count);
  if (t.llc_count < 1 || t.llc_count > max_llcs) return "llc_count is " + std::to_string(t.llc_count);
  if (t.node_count < 1) return "node_count is 0";
  for (unsigned cpu = 0; cpu < beyond_all; ++cpu) {
    if (index(t.llc_of(CpuId{cpu})) >= t.llc_count) return "no such LLC as that of cpu " + std::to_string(cpu);
    if (t.node_of(CpuId{cpu}) >= t.node_count) return "no such node as that of cpu " + std::to_string(cpu);
  }
  return {};
}

}  // namespace terrace::topology
