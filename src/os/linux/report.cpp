// SPDX-License-Identifier: MIT OR Apache-2.0
#include "base/report.h"

#include "base/format.h"
#include "os/io.h"

namespace terrace {
namespace {

constexpr std::size_t line_size = 256;

[[noreturn]] void die(const Writer& line) noexcept {
  os::write_all(os::standard_error, line.written());
  os::abort_process();
}

}  // namespace

void report_double_free(const char* function, const void* block) noexcept {
  char buf[line_size];
  die(Writer(buf, sizeof buf).text("terrace: ").text(function).text("(): double free of ").pointer(block).text("\n"));
}

void report_invalid_pointer(const char* function, const void* pointer) noexcept {
  char buf[line_size];
  die(Writer(buf, sizeof buf).text("terrace: ").text(function).text("(): invalid pointer ").pointer(pointer).text("\n"));
}

void report_write_after_free(const char* function, const void* block) noexcept {
  char buf[line_size];
  die(Writer(buf, sizeof buf)
          .text("terrace: ")
          .text(function)
          .text("(): block ")
          .pointer(block)
          .text(" was written after it was freed\n"));
}

void report_internal(const char* what) noexcept {
  char buf[line_size];
  die(Writer(buf, sizeof buf).text("terrace: internal error: ").text(what).text("\n"));
}

void warn(const char* what, const char* value, const char* consequence) noexcept {
  char buf[line_size];
  Writer line(buf, sizeof buf);
  line.text("terrace: ").text(what).text(" ").text(value).text(": ").text(consequence).text("\n");
  os::write_all(os::standard_error, line.written());
}

}  // namespace terrace
