// SPDX-License-Identifier: MIT OR Apache-2.0
// One line of JSON, an object of numbers.
#pragma once

#include <cstdio>

namespace bench {

class Line {
 public:
  Line& add(const char* key, double value) {
    std::printf("%s\"%s\": %.10g", first_ ? "{" : ", ", key, value);
    first_ = false;
    return *this;
  }
  void end() { std::puts("}"); }

 private:
  bool first_ = true;
};

}  // namespace bench
