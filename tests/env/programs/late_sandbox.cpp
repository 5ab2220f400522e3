// SPDX-License-Identifier: MIT OR Apache-2.0
// A program that puts itself into a sandbox after its start, and then works as before.
//
//   late_sandbox KILL|EPERM|ENOSYS|EINVAL|ENOMEM NAME[,NAME...] THREADS    these calls are refused, or end the process
//   late_sandbox ONLY NAME[,NAME...] THREADS                 all others but those of libc and of this program end the process
//
// With 0 threads none was ever started.
#include "env_test.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

using namespace env_test;  // NOLINT(google-build-using-namespace): a program

namespace {

struct Call {
  const char* name;
  int number;
};
constexpr Call known[] = {
    {"membarrier", SYS_membarrier},
    {"madvise", SYS_madvise},
    {"mremap", SYS_mremap},
    {"getrandom", SYS_getrandom},
    {"mmap", SYS_mmap},
    {"munmap", SYS_munmap},
    {"futex", SYS_futex},
    {"sched_yield", SYS_sched_yield},
    {"prctl", SYS_prctl},
    {"rseq", SYS_rseq},
    {"openat", SYS_openat},
    {"mprotect", SYS_mprotect},
};
// What the program, libc's threads and its exit need without any allocator.
constexpr int libcs[] = {SYS_write, SYS_exit, SYS_exit_group, SYS_clone, SYS_clone3, SYS_rseq, SYS_set_robust_list,
                         SYS_mprotect, SYS_rt_sigprocmask, SYS_clock_nanosleep, SYS_clock_gettime, SYS_getcpu,
                         // glibc's own: thread stacks, their release, pthread_join
                         SYS_mmap, SYS_munmap, SYS_madvise, SYS_futex};

constexpr unsigned longest = 64;
sock_filter filter[longest];
unsigned length = 0;

void add(sock_filter instruction) {
  check(length < longest, "too many calls");
  filter[length++] = instruction;
}

void answer(int number, unsigned action) {
  add(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<unsigned>(number), 0, 1));
  add(BPF_STMT(BPF_RET | BPF_K, action));
}

void enter(const char* what, char* names) {
  const bool only = std::strcmp(what, "ONLY") == 0;
  const unsigned action = only                               ? SECCOMP_RET_ALLOW
                          : std::strcmp(what, "KILL") == 0   ? SECCOMP_RET_KILL_PROCESS
                          : std::strcmp(what, "ENOSYS") == 0 ? SECCOMP_RET_ERRNO | ENOSYS
                          : std::strcmp(what, "EINVAL") == 0 ? SECCOMP_RET_ERRNO | EINVAL
                          : std::strcmp(what, "ENOMEM") == 0 ? SECCOMP_RET_ERRNO | ENOMEM
                                                             : SECCOMP_RET_ERRNO | EPERM;
  add(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)));
  for (char* name = std::strtok(names, ","); name != nullptr; name = std::strtok(nullptr, ",")) {
    const Call* call = known;
    while (call != std::end(known) && std::strcmp(call->name, name) != 0) ++call;
    check(call != std::end(known), "no such call");
    answer(call->number, action);
  }
  if (only) {
    for (const int number : libcs) answer(number, SECCOMP_RET_ALLOW);
  }
  add(BPF_STMT(BPF_RET | BPF_K, only ? SECCOMP_RET_KILL_PROCESS : SECCOMP_RET_ALLOW));
  const sock_fprog program = {static_cast<unsigned short>(length), filter};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) _exit(77);
}

void* body(void* argument) {
  WorkingSet set(reinterpret_cast<std::uintptr_t>(argument));
  for (const double end = now() + 0.15; now() < end;) set.step();
  return nullptr;
}

// What one phase leaves in the levels lies idle in the next.
void work(std::uintptr_t threads) {
  pthread_t thread[8];
  for (std::uintptr_t i = 0; i < threads; ++i)
    check(pthread_create(&thread[i], nullptr, body, reinterpret_cast<void*>(i)) == 0, "pthread_create");
  body(reinterpret_cast<void*>(threads));
  for (std::uintptr_t i = 0; i < threads; ++i) pthread_join(thread[i], nullptr);
  malloc_trim(0);
}

}  // namespace

int main(int argc, char** argv) {
  check(argc == 4, "usage");
  const auto threads = static_cast<std::uintptr_t>(std::atoi(argv[3]));
  check(threads <= 8, "too many threads");
  work(threads);
  enter(argv[1], argv[2]);
  for (int phase = 0; phase < 2; ++phase) {
    usleep(20000);
    work(threads);
  }
  ok();
}
