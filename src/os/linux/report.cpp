// SPDX-License-Identifier: MIT OR Apache-2.0
#include "base/report.h"

#include "base/format.h"
#include "os/io.h"
#include "os/mutex.h"

namespace terrace {
namespace {

constexpr std::size_t line_size = 256;

void (*report_details)(const void* pointer) noexcept = nullptr;

[[noreturn]] void die(const Writer& line, const void* pointer) noexcept {
  os::write_all(os::standard_error, line.written());
  // A lock that this thread holds must not stop a handler of SIGABRT that allocates.
  os::Mutex::set_holds_all(true);
  if (pointer != nullptr && report_details != nullptr) report_details(pointer);
  os::abort_process();
}

// A line under construction.
struct Line {
  char buf[line_size];
  Writer writer{buf, sizeof buf};
  explicit Line(const char* function) noexcept { writer.text("terrace: ").text(function).text("(): "); }
};

}  // namespace

void set_report_details(void (*details)(const void* pointer) noexcept) noexcept { report_details = details; }

void report_double_free(const char* function, const void* block) noexcept {
  Line line(function);
  die(line.writer.text("double free of ").pointer(block).text("\n"), block);
}

void report_invalid_pointer(const char* function, const void* pointer) noexcept {
  Line line(function);
  die(line.writer.text("invalid pointer ").pointer(pointer).text("\n"), pointer);
}

void report_write_after_free(const char* function, const void* block) noexcept {
  Line line(function);
  die(line.writer.text("block ").pointer(block).text(" was written after it was freed\n"), block);
}

void report_interior_pointer(const char* function, const void* pointer, ReportedBlock block) noexcept {
  Line line(function);
  line.writer.text("invalid pointer ").pointer(pointer).text(", ");
  line.writer.decimal(static_cast<std::uint64_t>(static_cast<const char*>(pointer) - static_cast<const char*>(block.start)));
  line.writer.text(" bytes into the block of ").decimal(block.size).text(" bytes at ").pointer(block.start).text("\n");
  die(line.writer, block.start);
}

void report_out_of_bounds(const char* function, ReportedBlock block, bool beyond) noexcept {
  Line line(function);
  line.writer.text("block ").pointer(block.start).text(" of ").decimal(block.size).text(" bytes was written ");
  die(line.writer.text(beyond ? "beyond its end\n" : "before its start\n"), block.start);
}

void report_wrong_size(const char* function, ReportedBlock block, std::size_t claimed) noexcept {
  Line line(function);
  line.writer.text("block ").pointer(block.start).text(" has ").decimal(block.size).text(" bytes, not ");
  die(line.writer.decimal(claimed).text("\n"), block.start);
}

void report_wrong_alignment(const char* function, const void* block, std::size_t has, std::size_t claimed) noexcept {
  Line line(function);
  line.writer.text("block ").pointer(block).text(" has alignment ").decimal(has).text(", not ");
  die(line.writer.decimal(claimed).text("\n"), block);
}

void report_bad_arena_free(const char* function, ReportedPiece piece) noexcept {
  Line line(function);
  line.writer.text("bad free of ").pointer(piece.address).text(", ").decimal(piece.size).text(" bytes, in arena '");
  die(line.writer.text(piece.arena).text("'\n"), nullptr);
}

void report_wrong_arena_size(const char* function, ReportedPiece piece, std::size_t has) noexcept {
  Line line(function);
  line.writer.text("wrong size ").decimal(piece.size).text(" of ").pointer(piece.address).text(", which has ");
  die(line.writer.decimal(has).text(" bytes, in arena '").text(piece.arena).text("'\n"), nullptr);
}

void report_bad_import(const char* function, ReportedPiece piece, const char* wrong) noexcept {
  Line line(function);
  line.writer.text("the source of arena '").text(piece.arena).text("' has returned ").pointer(piece.address).text(", ");
  die(line.writer.decimal(piece.size).text(" bytes: ").text(wrong).text("\n"), nullptr);
}

void report_arena_failure(const char* function, const char* arena, std::size_t size) noexcept {
  Line line(function);
  die(line.writer.text("arena '").text(arena).text("' can not give ").decimal(size).text(" bytes\n"), nullptr);
}

void report_arena_in_use(const char* function, const char* arena, const char* importer) noexcept {
  Line line(function);
  die(line.writer.text("arena '").text(arena).text("' is the source of arena '").text(importer).text("'\n"), nullptr);
}

void warn_of_leaked_pieces(const char* function, const char* arena, std::size_t bytes) noexcept {
  Line line(function);
  line.writer.decimal(bytes).text(" bytes of arena '").text(arena).text("' were not freed\n");
  os::write_all(os::standard_error, line.writer.written());
}

void report_internal(const char* what) noexcept {
  char buf[line_size];
  die(Writer(buf, sizeof buf).text("terrace: internal error: ").text(what).text("\n"), nullptr);
}

void warn(const char* what, const char* value, const char* consequence) noexcept {
  char buf[line_size];
  Writer line(buf, sizeof buf);
  line.text("terrace: ").text(what).text(" ").text(value).text(": ").text(consequence).text("\n");
  os::write_all(os::standard_error, line.written());
}

}  // namespace terrace
