// SPDX-License-Identifier: MIT OR Apache-2.0
#include "umem/messages.h"

#include "os/io.h"
#include "os/mutex.h"
#include "os/stack.h"
#include "umem/faults.h"
#include "umem/options.h"

#include <dlfcn.h>

extern "C" {
char umem_error_buffer[8192] __attribute__((visibility("default")));
unsigned umem_error_begin __attribute__((visibility("default")));
}

namespace terrace::umem {
namespace {

constinit os::RankedMutex<os::Rank::messages> mutex;
constexpr unsigned frames_shown = 32;

void keep(std::string_view text) noexcept {
  const os::LockGuard guard(mutex);
  for (const char c : text) {
    umem_error_buffer[umem_error_begin] = c;
    umem_error_begin = (umem_error_begin + 1) % sizeof umem_error_buffer;
  }
}

// "library'function+0x10".
void describe(Writer& out, const void* code) noexcept {
  Dl_info info;
  if (dladdr(code, &info) == 0 || info.dli_fname == nullptr) {
    out.text("?? (").pointer(code).text(")");
    return;
  }
  std::string_view path(info.dli_fname);
  if (const std::size_t slash = path.rfind('/'); slash != std::string_view::npos) path.remove_prefix(slash + 1);
  const void* const from = info.dli_sname != nullptr ? info.dli_saddr : info.dli_fbase;
  const auto offset = static_cast<std::uint64_t>(static_cast<const char*>(code) - static_cast<const char*>(from));
  out.text(path).text("'").text(info.dli_sname != nullptr ? info.dli_sname : "?").text("+0x").hex(offset);
}

}  // namespace

Message::~Message() {
  keep(written());
  if (options.verbose) os::write_all(os::standard_error, written());
}

// The thread that was writing one does not exist there; what it wrote may be half a line.
void messages_after_fork_in_child() noexcept { mutex.forget_holder(); }

void say_stack(const void* const* frames, unsigned depth) noexcept {
  for (unsigned i = 0; i < depth; ++i) {
    Message line;
    describe(line, frames[i]);
    line.text("\n");
  }
}

void say_stack() noexcept {
  const void* frames[frames_shown];
  say_stack(frames, os::capture_stack(frames, frames_shown));
}

namespace {

[[noreturn]] void end(const char* text) noexcept {
  Message().text("umem: ").text(text).text("\n");
  Message().text("stack trace:\n");
  say_stack();
  os::abort_process();
}

}  // namespace

void heap_is_corrupt() noexcept {
  if (!options.no_abort) end("heap corruption detected");
}
void panic(const char* text) noexcept {
  keep_for_core(Fault::panic, nullptr);
  end(text);
}

}  // namespace terrace::umem
