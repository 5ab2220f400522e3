// SPDX-License-Identifier: MIT OR Apache-2.0
// What the benchmark programs are told: KEY=VALUE... Numbers may end with K, M or G. Allocates nothing, because some of the
// programs measure the process's malloc.
#pragma once

#include <array>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace bench {

class Options {
 public:
  Options(int argc, char** argv) {
    for (int i = 1; i < argc; ++i) {
      const std::string_view all = argv[i];
      const std::size_t equals = all.find('=');
      if (equals == std::string_view::npos || count_ == settings_.size()) fail(all);
      settings_[count_++] = {all, all.substr(0, equals), argv[i] + equals + 1, false};
    }
  }

  /// The last one counts if a key is given twice.
  const char* text(std::string_view key, const char* otherwise) const {
    const char* value = otherwise;
    for (std::size_t i = 0; i < count_; ++i) {
      if (settings_[i].key != key) continue;
      value = settings_[i].value;
      settings_[i].known = true;
    }
    return value;
  }

  std::size_t number(std::string_view key, std::size_t otherwise) const {
    const char* const value = text(key, nullptr);
    return value == nullptr ? otherwise : number(value);
  }

  double real(std::string_view key, double otherwise) const {
    const char* const value = text(key, nullptr);
    if (value == nullptr) return otherwise;
    char* end = nullptr;
    const double number = std::strtod(value, &end);
    if (end == value || *end != 0 || !(number >= 0)) fail(value);
    return number;
  }

  bool flag(std::string_view key) const {
    const std::string_view value = text(key, "0");
    if (value != "0" && value != "1") fail(value);
    return value == "1";
  }

  /// Everything has been asked for; a key that nobody asked for is an error.
  void done() const {
    for (std::size_t i = 0; i < count_; ++i) {
      if (!settings_[i].known) fail(settings_[i].all);
    }
  }

  static std::size_t number(const char* text) {
    char* end = nullptr;
    const std::size_t n = std::strtoul(text, &end, 10);
    if (end == text || *text == '-' || (*end != 0 && end[1] != 0)) fail(text);
    switch (*end) {
      case 0: return n;
      case 'K': return n << 10;
      case 'M': return n << 20;
      case 'G': return n << 30;
      default: fail(text);
    }
  }

  [[noreturn]] static void fail(std::string_view what) {
    std::fprintf(stderr, "what is %.*s?\n", static_cast<int>(what.size()), what.data());
    std::exit(2);
  }

 private:
  struct Setting {
    std::string_view all;
    std::string_view key;
    const char* value = nullptr;
    mutable bool known = false;
  };

  std::array<Setting, 32> settings_;
  std::size_t count_ = 0;
};

}  // namespace bench
