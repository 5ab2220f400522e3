/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Runs a program with system calls that always fail, or end the process, as sandboxes have it, or that succeed without doing
   anything, as emulators have it.

     deny ENOSYS|EPERM|EINVAL|ENOMEM|KILL|IGNORED NAME[,NAME...] PROGRAM [ARGUMENT...]

   "dontneed_locked" is madvise with that request alone, which kernels before 5.18 do not know. The environment variable
   DENY_PRELOAD becomes the LD_PRELOAD of the program. */
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
    {"rseq", SYS_rseq},         {"getcpu", SYS_getcpu},       {"membarrier", SYS_membarrier},
    {"madvise", SYS_madvise},   {"mremap", SYS_mremap},       {"sched_getaffinity", SYS_sched_getaffinity},
    {"prctl", SYS_prctl},       {"getrandom", SYS_getrandom}, {"munmap", SYS_munmap},
    {"mprotect", SYS_mprotect}, {"futex", SYS_futex},         {"clock_gettime", SYS_clock_gettime},
};

static const struct {
  const char* name;
  unsigned action;
} actions[] = {
    {"ENOSYS", SECCOMP_RET_ERRNO | ENOSYS}, {"EPERM", SECCOMP_RET_ERRNO | EPERM}, {"EINVAL", SECCOMP_RET_ERRNO | EINVAL},
    {"ENOMEM", SECCOMP_RET_ERRNO | ENOMEM}, {"KILL", SECCOMP_RET_KILL_PROCESS},   {"IGNORED", SECCOMP_RET_ERRNO},
};

static unsigned action_of(const char* name) {
  for (size_t i = 0; i < sizeof actions / sizeof *actions; ++i) {
    if (strcmp(actions[i].name, name) == 0) return actions[i].action;
  }
  fprintf(stderr, "deny: no such answer: %s\n", name);
  exit(2);
}

static int number_of(const char* name) {
  for (size_t i = 0; i < sizeof calls / sizeof *calls; ++i) {
    if (strcmp(calls[i].name, name) == 0) return calls[i].number;
  }
  fprintf(stderr, "deny: no such call: %s\n", name);
  exit(2);
}

static int install(struct sock_filter* filter, size_t length) {
  const struct sock_fprog program = {(unsigned short)length, filter};
  return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

static int refuse(int number, unsigned action) {
  struct sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)number, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, action),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  return install(filter, sizeof filter / sizeof *filter);
}

static int refuse_dontneed_locked(unsigned action) {
  enum { dontneed_locked = 24 };
  struct sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_madvise, 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2])),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, dontneed_locked, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, action),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  return install(filter, sizeof filter / sizeof *filter);
}

int main(int argc, char** argv) {
  if (argc < 4) return 2;
  const unsigned action = action_of(argv[1]);
  const char* const preload = getenv("DENY_PRELOAD");
  if (preload != NULL) setenv("LD_PRELOAD", preload, 1);
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return 77;
  int last_is_prctl = 0;
  for (char* name = strtok(argv[2], ","); name != NULL; name = strtok(NULL, ",")) {
    if (strcmp(name, "dontneed_locked") == 0) {
      if (refuse_dontneed_locked(action) != 0) return 77;
      continue;
    }
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
