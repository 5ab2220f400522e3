// SPDX-License-Identifier: MIT OR Apache-2.0
// The input of a fuzzer, taken apart from the front. At the end everything reads as 0.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace fuzz {

class Bytes {
 public:
  Bytes(const std::uint8_t* data, std::size_t size) : data_(data), left_(size) {}

  bool empty() const { return left_ == 0; }
  std::uint8_t byte() {
    if (left_ == 0) return 0;
    --left_;
    return *data_++;
  }
  std::uint32_t number() { return byte() | static_cast<std::uint32_t>(byte()) << 8; }
  /// Up to the next line feed, which is dropped.
  std::string_view line() {
    const auto* const text = reinterpret_cast<const char*>(data_);
    std::size_t length = 0;
    while (length < left_ && text[length] != '\n') ++length;
    const std::size_t taken = length < left_ ? length + 1 : length;
    data_ += taken;
    left_ -= taken;
    return {text, length};
  }

 private:
  const std::uint8_t* data_;
  std::size_t left_;
};

/// Ends the process as libFuzzer expects it of a finding.
#define FUZZ_CHECK(condition)                                                        \
  do {                                                                               \
    if (!(condition)) {                                                              \
      std::fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #condition); \
      std::abort();                                                                  \
    }                                                                                \
  } while (false)

}  // namespace fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);
