// SPDX-License-Identifier: MIT OR Apache-2.0
#include "os/possible_cpus.h"

#include <cstdio>
#include <gtest/gtest.h>
#include <string>
#include <unistd.h>

namespace terrace::os {
namespace {

unsigned count_in(const std::string& list) {
  char path[] = "/tmp/terrace_possible_cpus_XXXXXX";
  const int fd = mkstemp(path);
  EXPECT_EQ(write(fd, list.data(), list.size()), static_cast<ssize_t>(list.size()));
  close(fd);
  const unsigned n = count_in_list(path);
  unlink(path);
  return n;
}

TEST(PossibleCpus, are_counted_up_to_the_highest_number) {
  EXPECT_EQ(count_in("0\n"), 1U);
  EXPECT_EQ(count_in("0-3,8-11\n"), 12U);
  EXPECT_EQ(count_in("0-8191\n"), 8192U);
}

TEST(PossibleCpus, are_counted_in_lists_of_any_length) {
  std::string list = "0";
  for (int cpu = 2; cpu < 12000; cpu += 2) list += "," + std::to_string(cpu);
  EXPECT_EQ(count_in(list + "\n"), 11999U);
}

TEST(PossibleCpus, are_none_where_there_is_no_list) {
  EXPECT_EQ(count_in(""), 0U);
  EXPECT_EQ(count_in("\n"), 0U);
  EXPECT_EQ(count_in_list("/nonexistent/possible"), 0U);
}

}  // namespace
}  // namespace terrace::os
