// SPDX-License-Identifier: MIT OR Apache-2.0
// The reader of the environment's options: one line of input for each variable. The reference is a reader of its own, slow and
// plain, by the standard library.
#include "bytes.h"
#include "heap/heap.h"

#include <cmath>
#include <cstring>
#include <fcntl.h>
#include <optional>
#include <regex>
#include <string>
#include <unistd.h>
#include <vector>

namespace {

using terrace::heap::Options;
using terrace::heap::Placement;

std::optional<std::uint64_t> number_of(const std::string& text) {
  if (!std::regex_match(text, std::regex("[0-9]{1,18}"))) return std::nullopt;
  return std::strtoull(text.c_str(), nullptr, 10);
}

std::optional<std::uint64_t> bytes_of(std::string text) {
  unsigned shift = 0;
  if (!text.empty() && std::strchr("KkMmGg", text.back()) != nullptr) {
    const char unit = static_cast<char>(text.back() & ~0x20);
    shift = unit == 'K' ? 10 : unit == 'M' ? 20 : 30;
    text.pop_back();
  }
  const auto number = number_of(text);
  if (!number || (*number << shift) >> shift != *number) return std::nullopt;
  return *number << shift;
}

// Sets what the text says; false: it says nothing that is known.
bool placement_of(const std::string& text, Options& out) {
  if (text == "none") return out.placement = Placement::none, true;
  if (text == "punctuated") return out.placement = Placement::punctuated, true;
  if (text == "odd") return out.placement = Placement::odd, true;
  std::smatch parts;
  if (!std::regex_match(text, parts, std::regex("random(:([0-9]{0,18})(\\.([0-9]{0,9})[0-9]*)?)?"))) return false;
  double probability = 1.0 / 16;
  if (parts[1].matched) {
    if (parts[2].length() == 0 && !parts[3].matched) return false;
    if (parts[3].matched && parts[4].length() == 0) return false;
    probability = std::strtod((std::string(parts[2]) + "." + std::string(parts[4]) + "0").c_str(), nullptr);
    if (probability > 1) return false;
  }
  out.placement = Placement::random;
  out.random_line_per_65536 = static_cast<std::uint32_t>(probability * 65536);
  return true;
}

Options expected(const std::vector<std::string>& values) {
  Options o;
  placement_of(values[0], o);
  if (const auto n = bytes_of(values[1])) o.budget = *n == 0 ? 1 : *n;
  if (const auto n = number_of(values[2])) o.decay_ms = *n;
  return o;
}

// Complaints about values are not looked at here: standard error is elsewhere meanwhile.
class Silence {
 public:
  Silence() : standard_error_(dup(STDERR_FILENO)) {
    static const int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    dup2(null, STDERR_FILENO);
  }
  ~Silence() {
    dup2(standard_error_, STDERR_FILENO);
    close(standard_error_);
  }
  Silence(const Silence&) = delete;
  Silence& operator=(const Silence&) = delete;

 private:
  int standard_error_;
};

std::vector<std::string> values;  // of the input

const char* lookup(const char* name) noexcept {
  constexpr const char* names[] = {"TERRACE_PLACEMENT", "TERRACE_BUDGET", "TERRACE_DECAY_MS"};
  for (std::size_t i = 0; i < 3; ++i) {
    if (std::strcmp(name, names[i]) == 0) return values[i].c_str();
  }
  return nullptr;
}

Options read_from_input() {
  const Silence silence;
  return terrace::heap::read_options(lookup);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Bytes input(data, size);
  values.clear();
  for (int i = 0; i < 3; ++i) {
    const std::string_view line = input.line();
    values.emplace_back(line.substr(0, line.find('\0')));
  }
  const Options read = read_from_input();
  const Options wanted = expected(values);
  FUZZ_CHECK(read.placement == wanted.placement);
  const auto difference = std::abs(static_cast<double>(read.random_line_per_65536) - wanted.random_line_per_65536);
  FUZZ_CHECK(difference <= 1);  // the reference rounds in binary
  FUZZ_CHECK(read.budget == wanted.budget);
  FUZZ_CHECK(read.decay_ms == wanted.decay_ms);
  return 0;
}
