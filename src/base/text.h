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

}  // namespace terrace
