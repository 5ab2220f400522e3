// SPDX-License-Identifier: MIT OR Apache-2.0
#include "check/options.h"

#include "base/parse.h"
#include "base/report.h"
#include "base/text.h"
#include "os/environment.h"

#if !defined(TERRACE_CHECK_DEFAULT)
#define TERRACE_CHECK_DEFAULT nullptr
#endif

namespace terrace::check {
namespace {

// Of a build that is for debugging.
constexpr const char* without_variable = TERRACE_CHECK_DEFAULT;

}  // namespace

bool parse_options(std::string_view text, Options& out) noexcept {
  if (text == "0") return true;
  if (!skip_prefix(text, "1")) return false;
  out.on = true;
  while (!text.empty()) {
    if (!skip_prefix(text, ",")) return false;
    const std::size_t comma = text.find(',');
    std::string_view part(text.data(), comma < text.size() ? comma : text.size());
    text.remove_prefix(part.size());
    if (skip_prefix(part, "sample:")) {
      if (!parse_number(part, out.sample)) return false;
    } else if (!skip_prefix(part, "quarantine:") || !parse_bytes(part, out.quarantine)) {
      return false;
    }
  }
  return true;
}

Options read_options() noexcept {
  Options o;
  const char* value = os::environment("TERRACE_CHECK");
  if (value == nullptr) value = without_variable;
  if (value == nullptr || parse_options(value, o)) return o;
  warn("TERRACE_CHECK", value, "none of 0, 1[,sample:N][,quarantine:BYTES]; ignored");
  return {};
}

}  // namespace terrace::check
