// SPDX-License-Identifier: MIT OR Apache-2.0
// Text into a caller's buffer: no stdio, because stdio allocates and locks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace terrace {

/// Appends to [buf, buf + size); what does not fit is counted but not written, so length() tells the size needed.
class Writer {
 public:
  Writer(char* buf, std::size_t size) noexcept : buf_(buf), size_(size) {}

  Writer& text(std::string_view s) noexcept {
    for (const char c : s) put(c);
    return *this;
  }
  Writer& decimal(std::uint64_t v) noexcept;
  Writer& hex(std::uint64_t v) noexcept;
  /// Right-aligned in `width` columns.
  Writer& decimal(std::uint64_t v, std::size_t width) noexcept;
  Writer& padded(std::string_view s, std::size_t width) noexcept;
  /// As a JSON string with its quotes: control characters and quotes escaped.
  Writer& json_string(std::string_view s) noexcept;
  Writer& pointer(const void* p) noexcept { return text("0x").hex(reinterpret_cast<std::uintptr_t>(p)); }
  void put(char c) noexcept {
    if (length_ < size_) buf_[length_] = c;
    ++length_;
  }

  /// What the whole text takes, without a terminating zero.
  std::size_t length() const noexcept { return length_; }
  /// What is in the buffer.
  std::string_view written() const noexcept { return {buf_, length_ < size_ ? length_ : size_}; }
  /// Ends the text with a zero, cutting it if there is no room. Requires size > 0.
  void terminate() noexcept { buf_[length_ < size_ ? length_ : size_ - 1] = '\0'; }

 private:
  char* buf_;
  std::size_t size_;
  std::size_t length_ = 0;
};

}  // namespace terrace
