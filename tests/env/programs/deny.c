/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Runs a program with system calls that always fail, or end the process, as sandboxes have it, or that succeed without doing
   anything, as emulators have it.

     deny ENOSYS|EPERM|KILL|IGNORED NAME[,NAME...] PROGRAM [ARGUMENT...]

   The environment variable DENY_PRELOAD becomes the LD_PRELOAD of the program. */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static const struct {
  const char* name;
  int number;
} calls[] = {
    {"rseq", SYS_rseq},       {"getcpu", SYS_getcpu},       {"membarrier", SYS_membarrier},
    {"madvise", SYS_madvise}, {"mremap", SYS_mremap},       {"sched_getaffinity", SYS_sched_getaffinity},
    {"prctl", SYS_prctl},     {"getrandom", SYS_getrandom},
};

static int number_of(const char* name) {
  for (size_t i = 0; i < sizeof calls / sizeof *calls; ++i) {
    if (strcmp(calls[i].name, name) == 0) return calls[i].number;
  }
  fprintf(stderr, "deny: no such call: %s\n", name);
  exit(2);
}

static int refuse(int number, unsigned action) {
  struct sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)number, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, action),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
  return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

int main(int argc, char** argv) {
  if (argc < 4) return 2;
  const unsigned action = strcmp(argv[1], "KILL") == 0    ? SECCOMP_RET_KILL_PROCESS
                          : strcmp(argv[1], "IGNORED") == 0 ? SECCOMP_RET_ERRNO
                          : strcmp(argv[1], "EPERM") == 0 ? SECCOMP_RET_ERRNO | EPERM
                                                          : SECCOMP_RET_ERRNO | ENOSYS;
  const char* const preload = getenv("DENY_PRELOAD");
  if (preload != NULL) setenv("LD_PRELOAD", preload, 1);
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return 77;
  int last_is_prctl = 0;
  for (char* name = strtok(argv[2], ","); name != NULL; name = strtok(NULL, ",")) {
    const int number = number_of(name);
    if (number == SYS_prctl) {
      last_is_prctl = 1;
    } else if (refuse(number, action) != 0) {
      return 77;
    }
  }
  if (last_is_prctl && refuse(SYS_prctl, action) != 0) return 77;
  execvp(argv[3], argv + 3);
  perror(argv[3]);
  return 2;
}
