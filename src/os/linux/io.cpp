// SPDX-License-Identifier: MIT OR Apache-2.0
#include "os/io.h"

#include "os/syscall.h"
#include "os/sysfs.h"

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <fcntl.h>

namespace terrace::os {
namespace {

long open_file(const char* path, int flags, int mode) noexcept {
  return arch::raw_syscall(SYS_openat, AT_FDCWD, word(path), flags, mode);
}

}  // namespace

void write_all(int fd, std::string_view text) noexcept { write_from(fd, text); }

int write_from(int fd, std::string_view& text) noexcept {
  while (!text.empty()) {
    const long n = arch::raw_syscall(SYS_write, fd, word(text.data()), static_cast<long>(text.size()));
    if (n == -EINTR) continue;
    if (n <= 0) return n == 0 ? EIO : static_cast<int>(-n);
    text.remove_prefix(static_cast<std::size_t>(n));
  }
  return 0;
}

int create_file(const char* path) noexcept {
  const long fd = open_file(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  return failed(fd) ? -1 : static_cast<int>(fd);
}

void close_file(int fd) noexcept { arch::raw_syscall(SYS_close, fd); }

int keep_open(int fd) noexcept {
  constexpr long out_of_the_way = 100;
  const long copy = arch::raw_syscall(SYS_fcntl, fd, F_DUPFD_CLOEXEC, out_of_the_way);
  return failed(copy) ? fd : static_cast<int>(copy);
}

int process_id() noexcept { return static_cast<int>(arch::raw_syscall(SYS_getpid)); }
int thread_id() noexcept { return static_cast<int>(arch::raw_syscall(SYS_gettid)); }

// Not by abort(3), which a program may have put another function in place of.
void abort_process() noexcept {
  sigset_t abort_only;
  sigemptyset(&abort_only);
  sigaddset(&abort_only, SIGABRT);
  pthread_sigmask(SIG_UNBLOCK, &abort_only, nullptr);
  arch::raw_syscall(SYS_tgkill, process_id(), thread_id(), SIGABRT);  // a handler may leave by longjmp
  struct sigaction standard {};
  standard.sa_handler = SIG_DFL;
  sigaction(SIGABRT, &standard, nullptr);
  arch::raw_syscall(SYS_tgkill, process_id(), thread_id(), SIGABRT);
  __builtin_trap();
}

namespace {

int open_to_read(const char* path) noexcept {
  const long fd = open_file(path, O_RDONLY | O_CLOEXEC, 0);
  return failed(fd) ? -1 : static_cast<int>(fd);
}

// 0 at the end, and when there is an error.
unsigned long read_some(int fd, char* buf, unsigned long size) noexcept {
  for (;;) {
    const long n = arch::raw_syscall(SYS_read, fd, word(buf), static_cast<long>(size));
    if (n != -EINTR) return n <= 0 ? 0 : static_cast<unsigned long>(n);
  }
}

}  // namespace

long read_file(const char* path, char* buf, unsigned long size) noexcept {
  if (size == 0) return -1;
  const int fd = open_to_read(path);
  if (fd < 0) return -1;
  unsigned long length = 0;
  while (length < size - 1) {
    const unsigned long n = read_some(fd, buf + length, size - 1 - length);
    if (n == 0) break;
    length += n;
  }
  close_file(fd);
  buf[length] = '\0';
  return static_cast<long>(length);
}

PiecewiseFile::PiecewiseFile(const char* path) noexcept : fd_(open_to_read(path)) {}
PiecewiseFile::~PiecewiseFile() {
  if (fd_ >= 0) close_file(fd_);
}
std::string_view PiecewiseFile::next() noexcept { return {piece_, read_some(fd_, piece_, sizeof piece_)}; }

}  // namespace terrace::os
