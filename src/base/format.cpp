// SPDX-License-Identifier: MIT OR Apache-2.0
#include "base/format.h"

namespace terrace {
namespace {

struct Digits {
  char text[20];
  std::size_t count = 0;
};

Digits digits_of(std::uint64_t v, std::uint64_t base) noexcept {
  Digits d;
  do {
    d.text[d.count++] = "0123456789abcdef"[v % base];
    v /= base;
  } while (v != 0);
  return d;
}

}  // namespace

Writer& Writer::decimal(std::uint64_t v) noexcept { return decimal(v, 0); }

Writer& Writer::decimal(std::uint64_t v, std::size_t width) noexcept {
  const Digits d = digits_of(v, 10);
  for (std::size_t i = d.count; i < width; ++i) put(' ');
  for (std::size_t i = d.count; i > 0; --i) put(d.text[i - 1]);
  return *this;
}

Writer& Writer::hex(std::uint64_t v) noexcept {
  const Digits d = digits_of(v, 16);
  for (std::size_t i = d.count; i > 0; --i) put(d.text[i - 1]);
  return *this;
}

Writer& Writer::padded(std::string_view s, std::size_t width) noexcept {
  for (std::size_t i = s.size(); i < width; ++i) put(' ');
  return text(s);
}

Writer& Writer::json_string(std::string_view s) noexcept {
  put('"');
  for (const char c : s) {
    const auto u = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      put('\\');
      put(c);
    } else if (u < 0x20 || u >= 0x7f) {  // bytes beyond ASCII need not be UTF-8: escaped, so the result always parses
      text("\\u00");
      put("0123456789abcdef"[u >> 4]);
      put("0123456789abcdef"[u & 15]);
    } else {
      put(c);
    }
  }
  put('"');
  return *this;
}

}  // namespace terrace
