// SPDX-License-Identifier: MIT OR Apache-2.0
// The limits of control groups, on systems that are described rather than present.
#include "os/limits.h"

#include "base/bits.h"
#include "base/types.h"

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <string>
#include <sys/resource.h>
#include <unistd.h>

namespace terrace::os {
namespace {

class LimitsOfGroups : public testing::Test {
 protected:
  LimitsOfGroups() {
    char path[] = "/tmp/terrace_limits_XXXXXX";
    root_ = mkdtemp(path);
  }
  ~LimitsOfGroups() override { std::filesystem::remove_all(root_); }

  void write(const std::string& path, const std::string& text) {
    const std::filesystem::path file = root_ + path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }
  void group(const std::string& path, const std::string& text) { write("/sys/fs/cgroup" + path, text); }
  void in_groups(const std::string& lines) { write("/proc/self/cgroup", lines); }

  const Limits& read(Groups groups = Groups::all) {
    errno = EDOM;
    read_limits(known_, groups, root_.c_str());
    EXPECT_EQ(errno, EDOM);
    return known_;
  }

  Limits known_;

 private:
  std::string root_;
};

constexpr unsigned no_quota = ~0U;

TEST_F(LimitsOfGroups, there_are_none) {
  EXPECT_EQ(read().of_groups, Limits::none);
  EXPECT_EQ(read(Groups::mounted).of_groups, Limits::none);
  EXPECT_EQ(known_.processors, no_quota);
}

TEST_F(LimitsOfGroups, of_version_2) {
  in_groups("0::/app\n");
  group("/app/memory.max", "67108864\n");
  group("/app/memory.high", "max\n");
  group("/app/cpu.max", "150000 100000\n");
  EXPECT_EQ(read().of_groups, 64 * mib);
  EXPECT_EQ(known_.processors, 2U);
}

TEST_F(LimitsOfGroups, of_version_2_where_reclaim_begins) {
  in_groups("0::/app\n");
  group("/app/memory.max", "67108864\n");
  group("/app/memory.high", "33554432\n");
  EXPECT_EQ(read().of_groups, 32 * mib);
}

TEST_F(LimitsOfGroups, of_version_1) {
  in_groups("9:name=systemd:/app\n5:cpu,cpuacct:/time\n4:memory:/app\n0::/other\n");
  group("/memory/app/memory.limit_in_bytes", "67108864\n");
  group("/memory/memory.limit_in_bytes", "9223372036854771712\n");
  group("/cpu/time/cpu.cfs_quota_us", "50000\n");
  group("/cpu/time/cpu.cfs_period_us", "100000\n");
  group("/cpu/cpu.cfs_quota_us", "-1\n");
  group("/cpu/cpu.cfs_period_us", "100000\n");
  group("/other/memory.max", "4096\n");  // what a version 2 beside it would be mounted elsewhere
  EXPECT_EQ(read().of_groups, 64 * mib);
  EXPECT_EQ(known_.processors, 1U);
}

TEST_F(LimitsOfGroups, the_smallest_up_to_the_top_counts) {
  in_groups("0::/slice/pod/app\n");
  group("/slice/pod/app/memory.max", "max\n");
  group("/slice/pod/app/cpu.max", "max 100000\n");
  group("/slice/pod/memory.max", "268435456\n");
  group("/slice/pod/cpu.max", "300000 100000\n");
  group("/slice/memory.high", "134217728\n");
  group("/slice/cpu.max", "800000 100000\n");
  EXPECT_EQ(read().of_groups, 128 * mib);
  EXPECT_EQ(known_.processors, 3U);
}

// A container whose paths are those of the host, and which has its own group mounted at the top.
TEST_F(LimitsOfGroups, paths_that_lead_nowhere_lead_to_the_top) {
  in_groups("4:memory:/docker/0123456789abcdef\n");
  group("/memory/memory.limit_in_bytes", "67108864\n");
  EXPECT_EQ(read().of_groups, 64 * mib);
  in_groups("4:memory:/../../elsewhere\n");
  EXPECT_EQ(read().of_groups, 64 * mib);
}

TEST_F(LimitsOfGroups, at_the_start_those_at_the_top_count) {
  group("/memory.max", "67108864\n");
  group("/memory.high", "4096\n");
  EXPECT_EQ(read(Groups::mounted).of_groups, 64 * mib);
  EXPECT_EQ(known_.processors, no_quota);
}

TEST_F(LimitsOfGroups, at_the_start_those_of_version_1_count) {
  group("/memory/memory.limit_in_bytes", "33554432\n");
  EXPECT_EQ(read(Groups::mounted).of_groups, 32 * mib);
}

TEST_F(LimitsOfGroups, what_is_wrong_or_absent_changes_nothing) {
  in_groups("0::/app\n");
  group("/app/memory.max", "67108864\n");
  group("/app/cpu.max", "200000 100000\n");
  read();
  for (const char* const text : {"", "\n", "x", "-1\n", "67108864 kB\n", "0x1000\n", "1e9\n"}) {
    group("/app/memory.max", text);
    EXPECT_EQ(read().of_groups, 64 * mib) << text;
  }
  for (const char* const text : {"", "100000\n", "max\n", "-1 100000\n", "0 100000\n", "100000 0\n", "x y\n"}) {
    group("/app/cpu.max", text);
    EXPECT_EQ(read().processors, 2U) << text;
  }
  for (const std::string& lines :
       {std::string("\n\n::\n"), std::string("0:"), std::string("nonsense"), std::string(10000, ':')}) {
    in_groups(lines);
    EXPECT_EQ(read().of_groups, 64 * mib);
  }
  in_groups("0::/" + std::string(5000, 'a') + "\n");
  EXPECT_EQ(read().of_groups, 64 * mib);
}

TEST_F(LimitsOfGroups, change) {
  in_groups("0::/app\n");
  group("/app/memory.max", "67108864\n");
  group("/app/cpu.max", "200000 100000\n");
  read();
  group("/app/memory.max", "max\n");
  group("/app/cpu.max", "max 100000\n");
  EXPECT_EQ(read().of_groups, Limits::none);
  EXPECT_EQ(known_.processors, no_quota);
}

TEST_F(LimitsOfGroups, are_not_those_of_the_process_and_the_machine) {
  const std::uint64_t machine = read().of_process;
  EXPECT_GT(machine, 16 * mib);
  for (const int resource : {RLIMIT_AS, RLIMIT_DATA}) {
    rlimit before{};
    getrlimit(resource, &before);
    rlimit limit = before;
    limit.rlim_cur = machine / 2;
    ASSERT_EQ(setrlimit(resource, &limit), 0);
    read();
    setrlimit(resource, &before);
    EXPECT_EQ(known_.of_process, machine / 2);
    EXPECT_EQ(known_.memory(), machine / 2);
  }
}

}  // namespace
}  // namespace terrace::os
