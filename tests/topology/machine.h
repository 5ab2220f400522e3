// SPDX-License-Identifier: MIT OR Apache-2.0
// Any machine as a tree of files like that of sysfs, from a description of a line or two:
//
//   cpus 0-15; offline 3; core 0,8 1,9; package 0-7 8-15; node 0-7 8-15; L1d core; L1i core; L2 core; L3 0-3,8-11 4-7,12-15
//
// After each word stand groups of cpus that share the thing, or `each` (nobody shares it), `all`, or the word of groups that
// were described before. Caches get their index in the order in which they stand. As in the kernel's files an offline cpu
// describes nothing and is in no list but that of possible cpus. Left out: `core each`, `package all`, no nodes.
#pragma once

#include "topology/topology.h"

#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace terrace::topology {

using Cpus = std::set<unsigned>;
using Groups = std::vector<Cpus>;

/// "0-3,8": only what a kernel would write; anything else throws.
Cpus cpus_of(std::string_view list);
std::string list_of(const Cpus& cpus);
/// With a space between each two.
std::string list_of(const Groups& groups);
/// As in "0000000f,00000001": what the kernel calls a map.
std::string map_of(const Cpus& cpus);

class Machine {
 public:
  explicit Machine(std::string_view description);

  struct Cache {
    std::string name;  // L1d L1i L1 L2 L2i L3 ...: the level and, unless unified, the type
    Groups groups;

    unsigned level() const { return static_cast<unsigned>(name[1] - '0'); }
    std::string type() const { return name.ends_with('d') ? "Data" : name.ends_with('i') ? "Instruction" : "Unified"; }
  };

  Cpus possible, online;
  Groups cores, packages, nodes;
  std::vector<Cache> caches;

 private:
  Groups groups_of(std::string_view words) const;
};

enum class Files {
  lists,  // what Terrace reads
  all,    // and what hwloc reads
};

/// A directory with "sys" in it, gone at the end.
class FakeRoot {
 public:
  FakeRoot();
  ~FakeRoot();
  FakeRoot(const FakeRoot&) = delete;
  FakeRoot& operator=(const FakeRoot&) = delete;

  void describe(const Machine& machine, Files files = Files::lists);
  /// Replaces or makes one file; the path is one below /sys.
  void put(const std::string& path, std::string_view text);
  /// For a cpu's file: "cpu3/cache/index0/level".
  static std::string cpu_file(const std::string& path) { return "devices/system/cpu/" + path; }
  void remove(const std::string& path) { std::filesystem::remove_all(sys() / path); }

  const std::filesystem::path& directory() const { return directory_; }
  std::filesystem::path sys() const { return directory_ / "sys"; }
  Topology read() const;

 private:
  void describe_cpu(const Machine& machine, unsigned cpu, Files files);
  void put_shared(const std::string& path, std::string_view list_name, std::string_view map_name, const Cpus& cpus,
                  Files files);

  std::filesystem::path directory_;
};

/// The machine of this description as Terrace sees it.
Topology topology_of(std::string_view description);

/// The cpus below cpu_count by LLC, in the order of the LLCs' numbers: "0-3 4-7".
std::string llcs(const Topology& t);
std::string nodes(const Topology& t);

/// Which of these cpus are together, whatever the groups are called: "0-3 4-7", by the first of each.
template <class GroupOf>
std::string partition(const Cpus& cpus, GroupOf group_of) {
  std::map<unsigned, Cpus> by_group;
  std::vector<unsigned> order;
  for (const unsigned cpu : cpus) {
    const unsigned group = group_of(cpu);
    if (by_group[group].empty()) order.push_back(group);
    by_group[group].insert(cpu);
  }
  Groups groups;
  for (const unsigned group : order) groups.push_back(by_group[group]);
  return list_of(groups);
}

/// What must hold for whatever was read; empty, or what does not.
std::string broken_invariant(const Topology& t);

}  // namespace terrace::topology
