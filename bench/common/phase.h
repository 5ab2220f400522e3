// SPDX-License-Identifier: MIT OR Apache-2.0
// Time, processor time and page faults of a part of a process; what it has resident.
#pragma once

#include "ticks.h"

#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

namespace bench {

struct Spent {
  double seconds = 0;
  double cpu_seconds = 0;
  double faults = 0;
};

class Phase {
 public:
  Phase() : usage_(usage()), begin_(nanoseconds_now()) {}

  Spent spent() const {
    const double seconds = static_cast<double>(nanoseconds_now() - begin_) / 1e9;
    const rusage now = usage();
    return {seconds, processor(now) - processor(usage_), static_cast<double>(now.ru_minflt - usage_.ru_minflt)};
  }

 private:
  static rusage usage() {
    rusage u{};
    getrusage(RUSAGE_SELF, &u);
    return u;
  }
  static double seconds(const timeval& t) { return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) / 1e6; }
  static double processor(const rusage& u) { return seconds(u.ru_utime) + seconds(u.ru_stime); }

  rusage usage_;
  std::uint64_t begin_;
};

/// Without stdio, which would allocate a buffer.
inline double resident_bytes() {
  char text[128] = {};
  const int file = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
  const ssize_t length = file < 0 ? -1 : read(file, text, sizeof text - 1);
  long pages = 0;
  if (length <= 0 || std::sscanf(text, "%*d %ld", &pages) != 1) {
    std::perror("/proc/self/statm");
    std::exit(1);
  }
  close(file);
  return static_cast<double>(pages) * static_cast<double>(sysconf(_SC_PAGESIZE));
}

}  // namespace bench
