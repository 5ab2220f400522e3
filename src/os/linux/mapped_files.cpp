// SPDX-License-Identifier: MIT OR Apache-2.0
#include "os/mapped_files.h"

#include "base/text.h"

namespace terrace::os {
namespace {

// Up to the first character that is no digit.
std::uint64_t take_hexadecimal(std::string_view& text) noexcept {
  std::uint64_t value = 0;
  for (; !text.empty(); text.remove_prefix(1)) {
    const char c = text.front();
    if (c >= '0' && c <= '9') {
      value = value << 4 | static_cast<unsigned>(c - '0');
    } else if (c >= 'a' && c <= 'f') {
      value = value << 4 | static_cast<unsigned>(c - 'a' + 10);
    } else {
      break;
    }
  }
  return value;
}

// start-end rwxp offset device inode   path
bool parse(std::string_view line, MappedFile& out) noexcept {
  const std::size_t path = line.find('/');
  if (path == std::string_view::npos) return false;
  out.path = {line.data() + path, line.size() - path};
  out.start = take_hexadecimal(line);
  if (!skip_prefix(line, "-")) return false;
  out.end = take_hexadecimal(line);
  constexpr std::size_t permissions = 6;
  if (line.size() < permissions) return false;
  out.readable = line[1] == 'r';
  out.writable = line[2] == 'w';
  out.executable = line[3] == 'x';
  line.remove_prefix(permissions);
  out.offset = take_hexadecimal(line);
  return true;
}

}  // namespace

bool MappedFiles::next_line(std::string_view& out) noexcept {
  std::size_t length = 0;
  for (;;) {
    if (piece_.empty()) piece_ = file_.next();
    if (piece_.empty()) return false;
    const char c = piece_.front();
    piece_.remove_prefix(1);
    if (c == '\n') break;
    if (length < line_.size()) line_[length] = c;
    ++length;
  }
  out = {line_.data(), length <= line_.size() ? length : 0};
  return true;
}

bool MappedFiles::next(MappedFile& out) noexcept {
  if (!file_.is_open()) return false;
  for (std::string_view line; next_line(line);) {
    if (parse(line, out)) return true;
  }
  return false;
}

}  // namespace terrace::os
