// SPDX-License-Identifier: MIT OR Apache-2.0
#include "files.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace terrace::record {

namespace {

constexpr int most_images = 1000;  // of one process

int open_file(const char* path, int flags) {
  return static_cast<int>(syscall(SYS_openat, AT_FDCWD, path, flags | O_RDWR | O_CLOEXEC | O_NOFOLLOW, 0644));
}

void close_file(int file) {
  const int error = errno;
  syscall(SYS_close, file);
  errno = error;
}

class Name {
 public:
  explicit Name(char* to) : to_(to) {}
  void add(char c) {
    if (length_ < path_bytes) to_[length_++] = c;
  }
  void add_number(std::uint64_t n) {
    if (n >= 10) add_number(n / 10);
    add(static_cast<char>('0' + n % 10));
  }
  bool end() {
    add('\0');
    return to_[length_ - 1] == '\0';
  }

 private:
  char* to_;
  std::size_t length_ = 0;
};

bool make_name(const char* pattern, std::uint64_t pid, int image, char* path) {
  Name name(path);
  for (const char* c = pattern; *c != '\0'; ++c) {
    if (c[0] == '%' && c[1] == 'p') {
      name.add_number(pid);
      ++c;
    } else {
      name.add(*c);
    }
  }
  if (image > 1) {
    name.add('.');
    name.add_number(static_cast<std::uint64_t>(image));
  }
  return name.end();
}

// To its full length, with the memory behind it: a store into a page that the disk has no room for kills the process.
// Never shorter: others extend the same file.
bool extend(int file, std::uint64_t offset, std::size_t bytes) {
  rlimit limit{};
  if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY && offset + bytes > limit.rlim_cur) {
    errno = EFBIG;  // the attempt would raise SIGXFSZ
    return false;
  }
  long done = 0;
  do {
    done = syscall(SYS_fallocate, file, 0, offset, bytes);
  } while (done != 0 && errno == EINTR);
  if (done == 0 || errno != EOPNOTSUPP) return done == 0;
  return syscall(SYS_pwrite64, file, "", 1, offset + bytes - 1) == 1;
}

}  // namespace

bool create_file(const char* pattern, std::uint64_t pid, char* path) noexcept {
  for (int image = 1; image <= most_images; ++image) {
    if (!make_name(pattern, pid, image, path)) return false;
    const int file = open_file(path, O_CREAT | O_EXCL);
    if (file >= 0) {
      close_file(file);
      return true;
    }
    if (errno != EEXIST) return false;
  }
  return false;
}

void* map_part(const char* path, std::uint64_t offset, std::size_t bytes) noexcept {
  const int file = open_file(path, 0);
  if (file < 0) return nullptr;
  void* part = MAP_FAILED;
  if (extend(file, offset, bytes))
    part = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, static_cast<off_t>(offset));
  close_file(file);
  if (part == MAP_FAILED) return nullptr;
  madvise(part, bytes, MADV_DONTFORK);
  return part;
}

}  // namespace terrace::record
