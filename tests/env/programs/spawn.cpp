// SPDX-License-Identifier: MIT OR Apache-2.0
// posix_spawn, with a search along PATH and file actions too, system and popen while other threads allocate.
#include "env_test.h"

#include <fcntl.h>
#include <spawn.h>

using namespace env_test;  // NOLINT(google-build-using-namespace): a program

extern char** environ;

namespace {

// libc's child runs on the thread-local data of its parent: it looks for the program, opens and duplicates files there.
void spawn_with_actions() {
  posix_spawn_file_actions_t actions;
  check(posix_spawn_file_actions_init(&actions) == 0, "posix_spawn_file_actions_init");
  check(posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0) == 0, "addopen");
  check(posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO) == 0, "adddup2");
  char name[] = "true";
  char* arguments[] = {name, nullptr};
  pid_t pid = 0;
  check(posix_spawnp(&pid, "true", &actions, nullptr, arguments, environ) == 0, "posix_spawnp");
  expect_exit(pid, 0);
  check(posix_spawn_file_actions_destroy(&actions) == 0, "posix_spawn_file_actions_destroy");
}

}  // namespace

int main() {
  constexpr int least_rounds = 6;  // however slow the machine is
  {
    const Allocating others(3);
    WorkingSet mine(9);
    int rounds = 0;
    for (const double end = now() + 1.5; now() < end || rounds < least_rounds; ++rounds) {
      mine.step();
      char name[] = "true";
      char* arguments[] = {name, nullptr};
      pid_t pid = 0;
      check(posix_spawn(&pid, "/bin/true", nullptr, nullptr, arguments, environ) == 0, "posix_spawn");
      mine.step();
      expect_exit(pid, 0);
      spawn_with_actions();
      check(posix_spawn(&pid, "/nonexistent", nullptr, nullptr, arguments, environ) == ENOENT, "posix_spawn of nothing");
      const int status = std::system("exit 3");
      check(WIFEXITED(status) && WEXITSTATUS(status) == 3, "system");
      std::FILE* const pipe = popen("echo hello", "r");
      check(pipe != nullptr, "popen");
      char line[32] = {};
      check(std::fgets(line, sizeof line, pipe) != nullptr && std::strcmp(line, "hello\n") == 0, "what popen's child wrote");
      check(pclose(pipe) == 0, "pclose");
      mine.step();
    }
  }
  ok();
}
