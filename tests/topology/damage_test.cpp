// SPDX-License-Identifier: MIT OR Apache-2.0
// Files that are missing, can not be read, or hold what no kernel writes. The map may be wrong then, which costs speed; it must
// be a map.
#include "machine.h"

#include <fstream>
#include <gtest/gtest.h>
#include <unistd.h>

namespace terrace::topology {
namespace {

constexpr const char* two_llcs = "cpus 0-7; package 0-3 4-7; node 0-3 4-7; L1d each; L1i each; L2 each; L3 0-3 4-7";

void expect_one_of_everything(const Topology& t) {
  EXPECT_EQ(t.llc_count, 1U);
  EXPECT_EQ(t.node_count, 1U);
  EXPECT_EQ(broken_invariant(t), "");
}

TEST(Missing, no_root) {
  Topology t;
  read(t, "/nonexistent/sys");
  EXPECT_EQ(t.cpu_count, 1U);
  expect_one_of_everything(t);
}

TEST(Missing, an_empty_root) {
  const FakeRoot root;
  std::filesystem::create_directory(root.sys());
  EXPECT_EQ(root.read().cpu_count, 1U);
  expect_one_of_everything(root.read());
}

TEST(Missing, a_root_with_a_name_too_long_to_ask_for) {
  Topology t;
  read(t, std::string(600, '/').append("x").c_str());
  expect_one_of_everything(t);
  FakeRoot root;
  root.describe(Machine(two_llcs));
  std::string longer = root.sys().string();
  while (longer.size() < 500) longer += "/.";  // still a name of the same
  read(t, longer.c_str());
  EXPECT_EQ(broken_invariant(t), "");
}

TEST(Missing, only_the_number_of_cpus) {
  FakeRoot root;
  root.put(FakeRoot::cpu_file("possible"), "0-63\n");
  EXPECT_EQ(root.read().cpu_count, 64U);
  expect_one_of_everything(root.read());
}

TEST(Missing, without_caches_the_packages_count) {
  FakeRoot root;
  root.describe(Machine(two_llcs));
  for (unsigned cpu = 0; cpu < 8; ++cpu) root.remove(FakeRoot::cpu_file("cpu" + std::to_string(cpu) + "/cache"));
  EXPECT_EQ(llcs(root.read()), "0-3 4-7");
  EXPECT_EQ(nodes(root.read()), "0-3 4-7");
  for (unsigned cpu = 0; cpu < 8; ++cpu) root.remove(FakeRoot::cpu_file("cpu" + std::to_string(cpu) + "/topology"));
  expect_one_of_everything(root.read());
}

TEST(Missing, no_nodes) {
  FakeRoot root;
  root.describe(Machine(two_llcs));
  root.remove("devices/system/node");
  const Topology t = root.read();
  EXPECT_EQ(llcs(t), "0-3 4-7");
  EXPECT_EQ(t.node_count, 1U);
  root.put("devices/system/node/online", "0-1\n");  // and no directory for either
  EXPECT_EQ(broken_invariant(root.read()), "");
}

TEST(Missing, any_one_file) {
  FakeRoot whole;
  whole.describe(Machine(two_llcs));
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(whole.sys())) {
    if (entry.is_regular_file()) files.push_back(std::filesystem::relative(entry.path(), whole.sys()).string());
  }
  ASSERT_GT(files.size(), 100U);
  for (const std::string& file : files) {
    SCOPED_TRACE(file);
    const std::filesystem::path at = whole.sys() / file, aside = whole.directory() / "aside";
    std::filesystem::rename(at, aside);
    const Topology t = whole.read();
    EXPECT_EQ(broken_invariant(t), "");
    EXPECT_LE(t.llc_count, 3U);
    std::filesystem::rename(aside, at);
  }
}

// A file that may not be opened, and things that can be opened but not read; for root there is no file of the first kind.
TEST(Unreadable, anything_in_the_place_of_a_file) {
  const std::string files[] = {FakeRoot::cpu_file("possible"),
                               FakeRoot::cpu_file("cpu0/cache/index3/shared_cpu_list"),
                               FakeRoot::cpu_file("cpu0/cache/index3/level"),
                               FakeRoot::cpu_file("cpu4/cache/index3/type"),
                               "devices/system/node/online",
                               "devices/system/node/node1/cpulist"};
  for (const std::string& file : files) {
    SCOPED_TRACE(file);
    FakeRoot root;
    root.describe(Machine(two_llcs));
    const std::filesystem::path at = root.sys() / file;
    std::filesystem::permissions(at, std::filesystem::perms::none);
    EXPECT_EQ(broken_invariant(root.read()), "");
    root.remove(file);
    std::filesystem::create_directory(at);
    EXPECT_EQ(broken_invariant(root.read()), "");
    root.remove(file);
    std::filesystem::create_symlink(at.filename(), at);
    EXPECT_EQ(broken_invariant(root.read()), "");
    root.remove(file);
    std::filesystem::create_symlink("nowhere", at);
    EXPECT_EQ(broken_invariant(root.read()), "");
  }
}

TEST(Unreadable, a_root_that_nobody_may_enter) {
  FakeRoot root;
  root.describe(Machine(two_llcs));
  std::filesystem::permissions(root.sys(), std::filesystem::perms::none);
  const Topology t = root.read();
  std::filesystem::permissions(root.sys(), std::filesystem::perms::owner_all);
  EXPECT_EQ(broken_invariant(t), "");
  if (geteuid() != 0) expect_one_of_everything(t);
}

std::vector<std::string> garbage() {
  std::string many;
  for (int i = 0; i < 5000; ++i) many += "0,1,";
  return {"",
          "\n",
          " \n",
          "abc\n",
          "-",
          "-1\n",
          ",",
          "3-\n",
          "3-0\n",
          "0-3,\n",
          "0-3,x\n",
          "0,,1\n",
          "0-3-5\n",
          "0 - 3\n",
          "0-3\n4-7\n",
          "0x3\n",
          "+3\n",
          "1e3\n",
          "255\n",
          "256\n",
          "1048576\n",
          "1048577\n",
          "4294967295\n",
          "4294967296\n",
          "18446744073709551616\n",
          "99999999999999999999999999\n",
          "0-4294967295\n",
          "7,6,5,4,3,2,1,0\n",
          "0,0,0,0,0,0,0,0,0\n",
          std::string("0-3\0004-7\n", 8),
          std::string(8, '\0'),
          "\xff\xfe\xfd\n",
          std::string(20000, '1'),
          std::string(20000, '-'),
          std::string(20000, '\n'),
          many};
}

// In the file of one cpu, and in those of all cpus.
TEST(Garbage, in_the_file_of_a_cpu) {
  FakeRoot root;
  root.describe(Machine(two_llcs));
  for (const char* const name : {"cache/index3/level", "cache/index3/type", "cache/index3/shared_cpu_list",
                                 "cache/index2/shared_cpu_list", "topology/package_cpus_list"}) {
    for (const std::string& text : garbage()) {
      SCOPED_TRACE(std::string(name) + " holds " + testing::PrintToString(text.substr(0, 40)));
      const auto file = [&](unsigned cpu) { return FakeRoot::cpu_file("cpu" + std::to_string(cpu) + "/" + name); };
      std::vector<std::string> before;
      for (unsigned cpu = 0; cpu < 8; ++cpu) {
        std::ifstream in(root.sys() / file(cpu));
        before.emplace_back(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
      }
      for (unsigned cpu = 0; cpu < 8; ++cpu) {
        root.put(file(cpu), text);
        EXPECT_EQ(broken_invariant(root.read()), "") << "up to cpu " << cpu;
      }
      for (unsigned cpu = 0; cpu < 8; ++cpu) root.put(file(cpu), before[cpu]);
    }
  }
  EXPECT_EQ(llcs(root.read()), "0-3 4-7");
}

TEST(Garbage, in_the_list_of_possible_cpus) {
  FakeRoot root;
  root.describe(Machine(two_llcs));
  for (const std::string& text : garbage()) {
    SCOPED_TRACE(testing::PrintToString(text.substr(0, 40)));
    root.put(FakeRoot::cpu_file("possible"), text);
    EXPECT_EQ(broken_invariant(root.read()), "");
  }
}

TEST(Garbage, in_the_files_of_nodes) {
  for (const char* const name : {"devices/system/node/online", "devices/system/node/node0/cpulist"}) {
    FakeRoot root;
    root.describe(Machine(two_llcs));
    for (const std::string& text : garbage()) {
      SCOPED_TRACE(std::string(name) + " holds " + testing::PrintToString(text.substr(0, 40)));
      root.put(name, text);
      EXPECT_EQ(broken_invariant(root.read()), "");
      EXPECT_EQ(llcs(root.read()), "0-3 4-7");
    }
  }
}

TEST(Garbage, the_end_of_a_line_may_be_missing) {
  FakeRoot root;
  root.describe(Machine(two_llcs));
  root.put(FakeRoot::cpu_file("possible"), "0-7");
  for (unsigned cpu = 0; cpu < 8; ++cpu) {
    const std::string own = FakeRoot::cpu_file("cpu" + std::to_string(cpu) + "/cache/index3/");
    root.put(own + "level", "3");
    root.put(own + "type", "Unified");
    root.put(own + "shared_cpu_list", cpu < 4 ? "0-3" : "4-7 ");
  }
  EXPECT_EQ(llcs(root.read()), "0-3 4-7");
}

TEST(Garbage, what_one_cpu_says_wrong_another_says_right) {
  FakeRoot root;
  root.describe(Machine(two_llcs));
  root.put(FakeRoot::cpu_file("cpu0/cache/index3/shared_cpu_list"), "what?\n");
  root.put(FakeRoot::cpu_file("cpu4/cache/index3/shared_cpu_list"), "7-4\n");
  const Topology t = root.read();
  EXPECT_EQ(t.llc_of(CpuId{1}), t.llc_of(CpuId{3}));
  EXPECT_EQ(t.llc_of(CpuId{5}), t.llc_of(CpuId{7}));
  EXPECT_NE(t.llc_of(CpuId{1}), t.llc_of(CpuId{5}));
}

}  // namespace
}  // namespace terrace::topology
