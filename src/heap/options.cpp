// SPDX-License-Identifier: MIT OR Apache-2.0
// The environment's wishes, one reader each. docs/guide/options.md lists them.
#include "heap/options.h"

#include "base/parse.h"
#include "base/report.h"
#include "base/text.h"
#include "profile/profiler.h"

#include <string_view>

namespace terrace::heap {
namespace {

// ".05", "0.05", "1" and "1.0": parts per 65,536.
bool parse_probability(std::string_view text, std::uint32_t& out) noexcept {
  const std::size_t point = text.find('.');
  const std::string_view whole(text.data(), min_of(point, text.size()));
  std::uint64_t integer = 0, digits = 0, scale = 1;
  if (!whole.empty() && !parse_number(whole, integer)) return false;
  if (point != std::string_view::npos) {
    text.remove_prefix(point + 1);
    const std::string_view fraction(text.data(), min_of<std::size_t>(text.size(), 9));
    if (!parse_number(fraction, digits) || !all_digits(text)) return false;  // more digits count for nothing
    for (std::size_t i = 0; i < fraction.size(); ++i) scale *= 10;
  } else if (whole.empty()) {
    return false;
  }
  if (integer > 1 || (integer == 1 && digits != 0)) return false;
  out = static_cast<std::uint32_t>(integer * 65536 + digits * 65536 / scale);
  return true;
}

constexpr std::uint32_t default_probability = 65536 / 16;

bool parse_placement(std::string_view text, Options& out) noexcept {
  if (text == "none") {
    out.placement = Placement::none;
  } else if (text == "punctuated") {
    out.placement = Placement::punctuated;
  } else if (text == "odd") {
    out.placement = Placement::odd;
  } else if (skip_prefix(text, "random")) {
    std::uint32_t p = default_probability;
    if (skip_prefix(text, ":")) {
      if (!parse_probability(text, p)) return false;
    } else if (!text.empty()) {
      return false;
    }
    out.placement = Placement::random;
    out.random_line_per_65536 = p;
  } else {
    return false;
  }
  return true;
}

bool parse_percent(std::string_view text, unsigned& out) noexcept {
  std::uint64_t number = 0;
  if (!text.empty() && text.back() == '%') text.remove_suffix(1);
  if (!parse_number(text, number) || number == 0 || number > 100) return false;
  out = static_cast<unsigned>(number);
  return true;
}

bool parse_profile_word(std::string_view word, Options& out) noexcept {
  if (word == "frames") {
    out.profile_stacks = false;
    return true;
  }
  if (skip_prefix(word, "at=")) return !out.profile_dump.empty() && parse_percent(word, out.profile_dump_at);
  if (!skip_prefix(word, "dump=") || word.empty()) return false;
  out.profile_dump = word;
  return true;
}

bool parse_profile(std::string_view text, Options& out) noexcept {
  Halves rest = split(text, ',');
  Options found = out;
  if (!parse_bytes(rest.before, found.profile) || found.profile > profile::Profiler::most_period) return false;
  found.profile_stacks = true;
  while (rest.found) {
    rest = split(rest.behind, ',');
    if (!parse_profile_word(rest.before, found)) return false;
  }
  out = found;
  return true;
}

}  // namespace

Options read_options(Lookup lookup) noexcept {
  Options o;
  if (const char* v = lookup("TERRACE_PLACEMENT"); v != nullptr && !parse_placement(v, o)) {
    warn("TERRACE_PLACEMENT", v, "none of none, punctuated, odd, random[:PROBABILITY]; ignored");
  }
  std::uint64_t number = 0;
  if (const char* v = lookup("TERRACE_BUDGET"); v != nullptr) {
    if (parse_bytes(v, number)) {
      o.budget = max_of<std::uint64_t>(number, 1);
    } else {
      warn("TERRACE_BUDGET", v, "not a number of bytes (K, M, G allowed); ignored");
    }
  }
  if (const char* v = lookup("TERRACE_DECAY_MS"); v != nullptr) {
    if (parse_number(v, number)) {
      o.decay_ms = number;
    } else {
      warn("TERRACE_DECAY_MS", v, "not a number of milliseconds; ignored");
    }
  }
  if (const char* v = lookup("TERRACE_PROFILE"); v != nullptr && !parse_profile(v, o)) {
    warn("TERRACE_PROFILE", v, "not BYTES[,frames][,dump=PATH[,at=PERCENT]] (K, M, G allowed); ignored");
  }
  return o;
}

}  // namespace terrace::heap
