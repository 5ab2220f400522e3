// SPDX-License-Identifier: MIT OR Apache-2.0
// A library with the engine inside is unloaded while threads that have allocated wait in system calls: when they come back, the
// kernel looks at the descriptor that their rseq_cs names. It must not be one that has vanished.
//
//   unloaded PLUGIN [careless]      careless: the threads do not say that they leave, and the process must die of it, or the
//                                   kernel is one that does not look
#include "terrace/lab.h"

#include <csignal>
#include <cstdio>
#include <dlfcn.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace {

enum class Leaves { by_detaching, by_forgetting, not_at_all };

void fail(const char* what) {
  std::fprintf(stderr, "failed: %s\n", what);
  _exit(1);
}

template <class F>
F* function(void* library, const char* name) {
  void* const f = dlsym(library, name);
  if (f == nullptr) fail(name);
  return reinterpret_cast<F*>(f);
}

void round(const char* path, Leaves how) {
  void* const library = dlopen(path, RTLD_NOW);
  if (library == nullptr) fail(dlerror());
  if (function<int()>(library, "plugin_start")() == 0) fail("no heap");
  auto* const allocate = function<int(terrace_lab_thread*)>(library, "plugin_allocate");
  auto* const detach = function<void(terrace_lab_thread*)>(library, "plugin_detach");
  auto* const forget = function<void()>(library, "plugin_forget");

  int ready[2];
  int gone[2];
  if (pipe(ready) != 0 || pipe(gone) != 0) fail("pipe");
  std::thread other([&] {
    alignas(8) terrace_lab_thread mine;
    char byte = 0;
    if (allocate(&mine) == 0) fail("no object");
    if (how == Leaves::by_detaching) detach(&mine);
    if (how == Leaves::by_forgetting) forget();
    if (write(ready[1], &byte, 1) != 1 || read(gone[0], &byte, 1) != 1) fail("pipe");
  });
  char byte = 0;
  if (read(ready[0], &byte, 1) != 1) fail("pipe");
  usleep(1000);  // it waits by now
  alignas(8) terrace_lab_thread mine;
  if (allocate(&mine) == 0) fail("no object");
  dlclose(library);  // the destructor speaks for this thread
  if (dlopen(path, RTLD_NOW | RTLD_NOLOAD) != nullptr) fail("the library is still there");
  if (write(gone[1], &byte, 1) != 1) fail("pipe");
  other.join();
  usleep(100);
  for (const int fd : {ready[0], ready[1], gone[0], gone[1]}) close(fd);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  if (argc == 2) {
    for (int i = 0; i < 20; ++i) round(argv[1], i % 2 == 0 ? Leaves::by_detaching : Leaves::by_forgetting);
    return 0;
  }
  const pid_t child = fork();
  if (child == 0) {
    for (int i = 0; i < 20; ++i) round(argv[1], Leaves::not_at_all);
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
    std::puts("the kernel does not look at rseq_cs in system calls");
    return 77;
  }
  return WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV ? 0 : 1;
}
