// SPDX-License-Identifier: MIT OR Apache-2.0
// The files that the process has mapped, as the kernel lists them: without an allocation, for any state of the process.
#pragma once

#include "os/sysfs.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace terrace::os {

struct MappedFile {
  std::uint64_t start, end, offset;
  bool readable, writable, executable;
  std::string_view path;  // until the next one
};

/// One mapping after the other, by address. Lines longer than `line`, and mappings of no file, are passed over.
class MappedFiles {
 public:
  explicit MappedFiles(std::span<char> line, const char* path = "/proc/self/maps") noexcept : file_(path), line_(line) {}
  /// False: there are no more.
  bool next(MappedFile& out) noexcept;

 private:
  bool next_line(std::string_view& out) noexcept;

  PiecewiseFile file_;
  std::string_view piece_;
  std::span<char> line_;
};

}  // namespace terrace::os
