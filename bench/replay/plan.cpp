// SPDX-License-Identifier: MIT OR Apache-2.0
#include "plan_file.h"
#include "reader.h"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <string>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

namespace bench::replay {

namespace {

constexpr int damaged_status = 2;

[[noreturn]] void fail(const char* name, const char* why) {
  std::fprintf(stderr, "%s: %s\n", name, why);
  std::_Exit(damaged_status);
}

int compile_or_tell(const char* trace, int file) {
  try {
    compile(trace, file);
    return 0;
  } catch (const terrace::trace::Damaged& damage) {
    std::fprintf(stderr, "%s: %s\n", trace, damage.what());
    return damaged_status;
  }
}

// In a grandchild: time and memory of a child that is waited for would count as this process's.
int compile_apart(const char* trace) {
  const int file = memfd_create("plan", MFD_CLOEXEC);
  int ends[2];
  if (file < 0 || pipe(ends) != 0) fail(trace, std::strerror(errno));
  const pid_t child = fork();
  if (child < 0) fail(trace, std::strerror(errno));
  if (child == 0) {
    if (fork() == 0) {
      const auto status = static_cast<char>(compile_or_tell(trace, file));
      _exit(write(ends[1], &status, 1) == 1 ? 0 : 1);
    }
    _exit(0);
  }
  close(ends[1]);
  waitpid(child, nullptr, 0);
  char status = 0;
  if (read(ends[0], &status, 1) != 1) fail(trace, "could not be made ready for replay");
  if (status != 0) std::_Exit(status);
  close(ends[0]);
  return file;
}

}  // namespace

int write_plan(const char* trace, const char* path) {
  const std::string unfinished = std::string(path) + ".part";
  const int file = open(unfinished.c_str(), O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0644);
  if (file < 0) fail(path, std::strerror(errno));
  const int status = compile_or_tell(trace, file);
  close(file);
  const char* const from = unfinished.c_str();
  if (status == 0 && rename(from, path) != 0) fail(path, std::strerror(errno));
  if (status != 0) unlink(from);
  return status;
}

Plan::Plan(const char* path) {
  int file = open(path, O_RDONLY | O_CLOEXEC);
  char magic[sizeof plan_magic] = {};
  if (file < 0) fail(path, std::strerror(errno));
  const bool is_plan = read(file, magic, sizeof magic) == sizeof magic && std::memcmp(magic, plan_magic, sizeof magic) == 0;
  if (!is_plan) {
    close(file);
    file = compile_apart(path);
  }
  struct stat status {};
  if (fstat(file, &status) != 0) fail(path, std::strerror(errno));
  size_ = static_cast<std::size_t>(status.st_size);
  void* const area = mmap(nullptr, size_, PROT_READ, MAP_SHARED, file, 0);
  close(file);
  if (area == MAP_FAILED) fail(path, std::strerror(errno));
  bytes_ = static_cast<const char*>(area);
  if (size_ < sizeof(PlanHeader) || size_ < header().leftovers_offset + header().leftovers * sizeof(Leftover))
    fail(path, "this plan is truncated");
}

}  // namespace bench::replay
