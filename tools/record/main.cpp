// SPDX-License-Identifier: MIT OR Apache-2.0
// terrace_trace summary TRACE   what is in a trace, as JSON
// terrace_trace calls TRACE     every call in order, one line each: kind, thread, size, alignment, number of the block that it
//                               allocates, number of the block that it releases (- where there is none)
// Status 2 with a line on standard error if the file is no trace, or damaged.
#include "tell.h"

#include <cstdio>
#include <string_view>

namespace {

using namespace terrace::trace;

void print_id(const std::optional<Object>& object, char end) {
  if (object) {
    std::printf("%llu%c", static_cast<unsigned long long>(object->id), end);
  } else {
    std::printf("-%c", end);
  }
}

void tell_calls(const Trace& trace) {
  static constexpr const char* names[] = {"", "malloc", "calloc", "aligned", "realloc", "free"};
  Calls calls(trace);
  while (const std::optional<Call> call = calls.next()) {
    const Object& sized = call->object ? *call->object : *call->old;
    std::printf("%s %u %llu %llu ", names[static_cast<std::size_t>(call->kind)], call->thread,
                static_cast<unsigned long long>(sized.size), 1ULL << call->alignment_log2);
    print_id(call->object, ' ');
    print_id(call->old, '\n');
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view what = argc == 3 ? argv[1] : "";
  if (what != "summary" && what != "calls") {
    std::fprintf(stderr, "usage: terrace_trace summary|calls TRACE\n");
    return 2;
  }
  try {
    const Trace trace(argv[2]);
    what == "calls" ? tell_calls(trace) : tell_summary(trace);
    return std::fflush(stdout) == 0 ? 0 : 1;
  } catch (const Damaged& damage) {
    std::fprintf(stderr, "%s: %s\n", argv[2], damage.what());
    return 2;
  }
}
