// SPDX-License-Identifier: MIT OR Apache-2.0
// Small files of the kernel.
#pragma once

#include <string_view>

namespace terrace::os {

/// Reads at most size - 1 bytes of the file into buf and ends them with a zero. The length, or -1; errno is not touched.
long read_file(const char* path, char* buf, unsigned long size) noexcept;

/// As above for a file of any length: each(piece) for one piece after the other. False: there is no such file.
class PiecewiseFile {
 public:
  explicit PiecewiseFile(const char* path) noexcept;
  ~PiecewiseFile();
  PiecewiseFile(const PiecewiseFile&) = delete;
  PiecewiseFile& operator=(const PiecewiseFile&) = delete;
  bool is_open() const noexcept { return fd_ >= 0; }
  /// Empty at the end.
  std::string_view next() noexcept;

 private:
  int fd_;
  char piece_[512];
};
template <class Each>
bool read_in_pieces(const char* path, Each each) noexcept {
  PiecewiseFile file(path);
  if (!file.is_open()) return false;
  for (std::string_view piece = file.next(); !piece.empty(); piece = file.next()) each(piece);
  return true;
}

}  // namespace terrace::os
