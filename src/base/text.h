// SPDX-License-Identifier: MIT OR Apache-2.0
#pragma once

#include <cstring>
#include <string_view>

namespace terrace {

/// Removes `prefix` from the front of `text`; false when it is not there. (starts_with() needs the C++ runtime when it is not
/// optimised.)
inline bool skip_prefix(std::string_view& text, std::string_view prefix) noexcept {
  if (text.size() < prefix.size() || std::memcmp(text.data(), prefix.data(), prefix.size()) != 0) return false;
  text.remove_prefix(prefix.size());
  return true;
}

/// What is before the first `c`, or all of `text`; and what is behind it, if `c` is there. (substr() may throw, as said above.)
struct Halves {
  std::string_view before, behind;
  bool found;
};
inline Halves split(std::string_view text, char c) noexcept {
  const std::size_t at = text.find(c);
  if (at == std::string_view::npos) return {.before = text, .behind = {}, .found = false};
  return {.before = {text.data(), at}, .behind = {text.data() + at + 1, text.size() - at - 1}, .found = true};
}

}  // namespace terrace
