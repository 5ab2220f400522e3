// SPDX-License-Identifier: MIT OR Apache-2.0
// Numbers as people write them into environment variables.
#pragma once

#include <cstdint>
#include <string_view>

namespace terrace {

inline bool all_digits(std::string_view text) noexcept {
  return text.find_first_not_of("0123456789") == std::string_view::npos;
}
/// Up to 18 decimal digits and nothing else.
bool parse_number(std::string_view text, std::uint64_t& out) noexcept;
/// A number with K, M or G (or lower case) behind it for powers of 1,024.
bool parse_bytes(std::string_view text, std::uint64_t& out) noexcept;

}  // namespace terrace
