// SPDX-License-Identifier: MIT OR Apache-2.0
// Random machines: Terrace must find the groups that the machine was made of, and what a plain reading of the files by the
// rules of the theory finds.
#include "machine.h"

#include <algorithm>
#include <fstream>
#include <gtest/gtest.h>
#include <numeric>
#include <random>

namespace terrace::topology {
namespace {

constexpr unsigned machines = 80;
constexpr unsigned most_cpus = 150;  // each takes a dozen files

// The rules once more, with a set per cpu and without any shortcut.
class Reference {
 public:
  explicit Reference(const FakeRoot& root) : root_(root), possible_(cpus_of(text(FakeRoot::cpu_file("possible")))) {
    for (const unsigned cpu : possible_) {
      if (llc_.contains(cpu)) continue;
      const Cpus members = llc_of(cpu, private_level_2());
      for (const unsigned member : members) llc_[member] = count_ % max_llcs;
      count_ += members.empty() ? 0 : 1;
    }
  }

  unsigned count() const { return std::clamp(count_, 1U, max_llcs); }
  unsigned llc(unsigned cpu) const { return llc_.contains(cpu) ? llc_.at(cpu) : 0; }

 private:
  std::string text(const std::string& path) const {
    std::ifstream in(root_.sys() / path);
    std::string line;
    std::getline(in, line);
    return line;
  }

  bool private_level_2() const {
    const Cpus online = cpus_of(text(FakeRoot::cpu_file("online")));
    if (online.empty()) return false;
    const unsigned first = *online.begin();  // decides for all
    const Cpus core = cpus_of(text(FakeRoot::cpu_file("cpu" + std::to_string(first)) + "/topology/core_cpus_list"));
    return highest_level(first) == 2 && llc_of(first, false) == core;
  }

  int highest_level(unsigned cpu) const {
    int best = 0;
    const std::string own = FakeRoot::cpu_file("cpu" + std::to_string(cpu));
    for (unsigned i = 0; std::filesystem::exists(root_.sys() / (own + "/cache/index" + std::to_string(i))); ++i) {
      best = std::max(best, std::stoi(text(own + "/cache/index" + std::to_string(i) + "/level")));
    }
    return best;
  }

  Cpus llc_of(unsigned cpu, bool level_2_is_private) const {
    const std::string own = FakeRoot::cpu_file("cpu" + std::to_string(cpu));
    int best = level_2_is_private ? 2 : 1;
    std::string list = text(own + "/topology/package_cpus_list");
    for (unsigned i = 0; std::filesystem::exists(root_.sys() / (own + "/cache/index" + std::to_string(i))); ++i) {
      const std::string at = own + "/cache/index" + std::to_string(i);
      const int level = std::stoi(text(at + "/level"));
      if (level <= best || text(at + "/type") == "Instruction") continue;
      best = level;
      list = text(at + "/shared_cpu_list");
    }
    return cpus_of(list);
  }

  const FakeRoot& root_;
  Cpus possible_;
  std::map<unsigned, unsigned> llc_;
  unsigned count_ = 0;
};

// Cores in clusters in complexes in packages; numbers, holes and sleepers by chance.
class Maker {
 public:
  explicit Maker(unsigned seed) : random_(seed) {}

  Machine make() {
    unsigned threads, cores, clusters, complexes, packages;
    do {
      threads = pick({1, 1, 2, 4}), cores = pick({1, 2, 3, 4}), clusters = pick({1, 2, 3});
      complexes = pick({1, 1, 2, 4, 9}), packages = pick({1, 1, 2, 8});
    } while (threads * cores * clusters * complexes * packages > most_cpus);
    const std::vector<unsigned> numbers = number(threads * cores * clusters * complexes * packages, threads);
    const auto groups_of = [&](unsigned size) {
      Groups groups;
      for (std::size_t at = 0; at < numbers.size(); at += size) groups.emplace_back(&numbers[at], &numbers[at] + size);
      return groups;
    };
    Machine m("cpus 0");  // to be overwritten
    m.online.clear();
    m.possible = Cpus(numbers.begin(), numbers.end());
    m.cores = groups_of(threads);
    m.packages = groups_of(threads * cores * clusters * complexes);
    if (one_in(2)) m.nodes = m.packages;
    const Groups in_clusters = groups_of(threads * cores), in_complexes = groups_of(threads * cores * clusters);
    m.caches.push_back({.name = "L1d", .groups = m.cores});
    m.caches.push_back({.name = "L1i", .groups = m.cores});
    switch (pick({0, 1, 2, 3})) {
      case 0: m.caches.push_back({.name = "L2", .groups = in_complexes}); break;
      case 1:
        m.caches.push_back({.name = "L2", .groups = m.cores});
        m.caches.push_back({.name = "L3", .groups = in_complexes});
        break;
      case 2:
        m.caches.push_back({.name = "L2", .groups = in_clusters});
        m.caches.push_back({.name = "L3", .groups = in_complexes});
        break;
      default:
        m.caches.push_back({.name = "L2", .groups = m.cores});
        m.caches.push_back({.name = "L3", .groups = in_clusters});
        m.caches.push_back({.name = "L4", .groups = in_complexes});
    }
    const bool ends_at_level_2 = m.caches.back().name == "L2";
    if (one_in(4)) std::shuffle(m.caches.begin(), m.caches.end(), random_);
    for (const unsigned cpu : m.possible) {
      if (sleepers_ == 0 || !one_in(sleepers_)) m.online.insert(cpu);
    }
    // If one core of the first complex is awake, nothing tells that its level 2 is not the core's own.
    const auto is_awake = [&](const Cpus& part) {
      return std::ranges::any_of(part, [&](unsigned cpu) { return m.online.contains(cpu); });
    };
    const auto belongs_to = [](const Cpus& part, const Cpus& whole) { return whole.contains(*part.begin()); };
    const auto is_one_core = [&](const Cpus& complex) {
      return std::ranges::count_if(m.cores, [&](const Cpus& c) { return belongs_to(c, complex) && is_awake(c); }) == 1;
    };
    const bool like_cores = ends_at_level_2 && !m.online.empty() && std::ranges::all_of(in_complexes, [&](const Cpus& complex) {
                              return !complex.contains(*m.online.begin()) || is_one_core(complex);
                            });
    llcs_ = like_cores ? m.packages : in_complexes;
    return m;
  }

  /// Of the machine made last.
  unsigned llc(unsigned cpu) const {
    return static_cast<unsigned>(std::ranges::find_if(llcs_, [=](const Cpus& g) { return g.contains(cpu); }) - llcs_.begin());
  }
  std::size_t llc_count(const Cpus& online) const {
    return static_cast<std::size_t>(std::ranges::count_if(
        llcs_, [&](const Cpus& g) { return std::ranges::any_of(g, [&](unsigned cpu) { return online.contains(cpu); }); }));
  }

 private:
  unsigned pick(std::initializer_list<unsigned> choices) { return choices.begin()[random_() % choices.size()]; }
  bool one_in(unsigned n) { return random_() % n == 0; }

  // The numbers of the cpus in the order of the machine's parts: threads of a core, cores of a cluster, ...
  std::vector<unsigned> number(unsigned count, unsigned threads) {
    std::vector<unsigned> numbers(count);
    std::iota(numbers.begin(), numbers.end(), 0U);
    switch (pick({0, 1, 2, 3})) {
      case 0: break;  // one after the other
      case 1:         // the second threads after all the first
        for (unsigned i = 0; i < count; ++i) numbers[i] = i / threads + i % threads * (count / threads);
        break;
      case 2: std::shuffle(numbers.begin(), numbers.end(), random_); break;
      default: {  // with holes
        const unsigned gap = pick({2, 5, 40}), start = pick({0, 0, 3});
        for (unsigned& n : numbers) n += start + n / gap * pick({1, 1, 3});
        Cpus all(numbers.begin(), numbers.end());
        for (unsigned next = *all.rbegin() + 1; all.size() < count; ++next) all.insert(next);
        numbers.assign(all.begin(), all.end());
      }
    }
    sleepers_ = pick({0, 0, 10, 3});
    return numbers;
  }

  std::mt19937 random_;
  unsigned sleepers_ = 0;  // one in so many is offline
  Groups llcs_;
};

TEST(Random, machines_are_seen_as_they_were_made) {
  unsigned with_one = 0, with_more = 0;
  for (unsigned seed = 1; seed <= machines; ++seed) {
    Maker maker(seed);
    const Machine m = maker.make();
    SCOPED_TRACE("seed " + std::to_string(seed) + ", possible " + list_of(m.possible) + ", online " + list_of(m.online));
    FakeRoot root;
    root.describe(m);
    const Topology t = root.read();
    ASSERT_EQ(broken_invariant(t), "");
    ASSERT_EQ(t.cpu_count, *m.possible.rbegin() + 1);

    const auto ours = [&](unsigned cpu) { return index(t.llc_of(CpuId{cpu})); };
    const std::size_t count = maker.llc_count(m.online);
    ASSERT_EQ(t.llc_count, std::clamp<std::size_t>(count, 1, max_llcs));
    if (count <= max_llcs) {
      ASSERT_EQ(partition(m.online, ours), partition(m.online, [&](unsigned cpu) { return maker.llc(cpu); }));
    }
    if (t.llc_count > 1 && m.nodes.size() > 1) {
      ASSERT_EQ(t.node_count, m.nodes.size());
      for (const unsigned cpu : m.online) ASSERT_TRUE(m.nodes[t.node_of(CpuId{cpu})].contains(cpu)) << "cpu " << cpu;
    }

    const Reference reference(root);
    ASSERT_EQ(t.llc_count, reference.count());
    if (t.llc_count > 1) {  // else the cpus that describe nothing are told from the others by the reference only
      for (unsigned cpu = 0; cpu < t.cpu_count; ++cpu) ASSERT_EQ(ours(cpu), reference.llc(cpu)) << "cpu " << cpu;
    }
    with_one += count <= 1 ? 1 : 0;
    with_more += count > 1 ? 1 : 0;
  }
  EXPECT_GT(with_one, machines / 20);
  EXPECT_GT(with_more, machines / 2);
}

}  // namespace
}  // namespace terrace::topology
