// SPDX-License-Identifier: MIT OR Apache-2.0
#include "base/parse.h"

namespace terrace {

bool parse_number(std::string_view text, std::uint64_t& out) noexcept {
  if (text.empty() || text.size() > 18 || !all_digits(text)) return false;
  out = 0;
  for (const char c : text) out = out * 10 + static_cast<std::uint64_t>(c - '0');
  return true;
}

bool parse_bytes(std::string_view text, std::uint64_t& out) noexcept {
  unsigned shift = 0;
  if (!text.empty()) {
    switch (text.back()) {
      case 'K':
      case 'k': shift = 10; break;
      case 'M':
      case 'm': shift = 20; break;
      case 'G':
      case 'g': shift = 30; break;
      default: break;
    }
  }
  if (shift != 0) text.remove_suffix(1);
  if (!parse_number(text, out) || out > (~std::uint64_t{0} >> shift)) return false;
  out <<= shift;
  return true;
}

}  // namespace terrace
