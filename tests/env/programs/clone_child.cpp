// SPDX-License-Identifier: MIT OR Apache-2.0
// Children of clone() that share the memory, or have a copy of it, allocate in it, beside threads of their parent and beside
// the parent itself: with its thread pointer or one of their own, while it waits or goes on, and after its thread has ended.
// They return, exit, become another program, are killed; they fork, call vfork and have such children themselves. glibc's
// malloc survives them as long as the parent does not allocate meanwhile.
#include "env_test.h"

#include <sched.h>
#include <sys/mman.h>

using namespace env_test;  // NOLINT(google-build-using-namespace): a program

namespace {

constexpr int children_of_each_kind = 3;
constexpr std::size_t stack_bytes = 256 * 1024;
constexpr int left_behind = 8;
const pid_t parent = getpid();

enum class End { returns, exits, executes, is_killed };

struct Child {
  int flags = 0;
  End end = End::returns;
  void (*more)() = nullptr;  // what it does beside allocating
  void* thread_pointer = nullptr;
  std::atomic<bool> may_end{true};
  std::atomic<bool> has_begun{false};
  void* left[left_behind] = {};
  char* stack = nullptr;
  pid_t pid = 0, kernels_word = 0;
};

void churn(int rounds) {
  void* blocks[24];
  for (int r = 0; r < rounds; ++r) {
    for (int i = 0; i < 24; ++i) blocks[i] = filled(16 + static_cast<std::size_t>(i) * 24);
    for (int i = 0; i < 24; ++i) check_and_free(blocks[i], 16 + static_cast<std::size_t>(i) * 24);
  }
  check_and_free(filled(300000), 300000);
}

int run(void* argument) {
  Child& me = *static_cast<Child*>(argument);
  me.has_begun.store(true);
  for (int i = 0; i < left_behind; ++i) me.left[i] = filled(static_cast<std::size_t>(i) * 50 + 16);
  do {
    churn(20);
  } while (!me.may_end.load() && getppid() == parent);  // not when the test has failed
  if (me.more != nullptr) me.more();
  if (me.end == End::executes) execl("/bin/true", "true", nullptr);
  if (me.end == End::is_killed) kill(getpid(), SIGKILL);
  if (me.end != End::returns) _exit(0);
  return 0;
}

void start(Child& child) {
  child.stack = static_cast<char*>(mmap(nullptr, stack_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  check(child.stack != MAP_FAILED, "mmap");
  child.kernels_word = 1;
  child.pid = clone(run, child.stack + stack_bytes, child.flags | SIGCHLD, &child, &child.pid, child.thread_pointer,
                    &child.kernels_word);
  check(child.pid > 0, "clone");
}

void end(Child& child) {
  child.may_end.store(true);
  int status = 0;
  while (waitpid(child.pid, &status, 0) < 0) check(errno == EINTR, "waitpid");
  if (child.end == End::is_killed) {
    check(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL, "a child was not killed");
  } else {
    check(WIFEXITED(status) && WEXITSTATUS(status) == 0, "a child did not end as it should");
  }
  if ((child.flags & CLONE_CHILD_CLEARTID) != 0) check(child.kernels_word == 0, "the kernel did not write the caller's word");
  munmap(child.stack, stack_bytes);
  for (int i = 0; i < left_behind; ++i) check_and_free(child.left[i], static_cast<std::size_t>(i) * 50 + 16);
}

constexpr int shared = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND;
constexpr int kinds[] = {CLONE_VM | CLONE_VFORK,
                         CLONE_VM,
                         shared,
                         CLONE_VM | CLONE_CHILD_CLEARTID,
                         CLONE_VM | CLONE_CHILD_SETTID,
                         shared | CLONE_VFORK | CLONE_CHILD_CLEARTID};
constexpr End ends[] = {End::returns, End::exits, End::executes, End::is_killed};

bool parent_may_allocate() { return rung() != nullptr; }

void each_kind() {
  for (const int flags : kinds) {
    for (const End how : ends) {
      for (int i = 0; i < children_of_each_kind; ++i) {
        Child child;
        child.flags = flags;
        child.end = how;
        start(child);
        if (parent_may_allocate()) churn(10);
        end(child);
        churn(10);
      }
    }
  }
}

// Several at once, which live until the parent has allocated beside them.
void beside(void (*more)()) {
  Child children[3];
  for (Child& child : children) {
    child.flags = CLONE_VM;
    child.more = more;
    child.may_end.store(false);
  }
  const int count = parent_may_allocate() ? 3 : 1;
  for (int i = 0; i < count; ++i) start(children[i]);
  for (int i = 0; i < count; ++i) {
    while (!children[i].has_begun.load()) usleep(100);
  }
  if (parent_may_allocate()) churn(100);
  for (int i = 0; i < count; ++i) end(children[i]);
  churn(20);
}

// Beside threads of its own: on all slots, and that of a thread without an rseq area would be among them.
[[noreturn]] void forked() {
  no_longer_than_a_child_needs();
  churn(20);
  {
    const Allocating others(2);
    churn(50);
  }
  _exit(0);
}

void forks() {
  const pid_t pid = fork();
  if (pid == 0) forked();
  expect_exit(pid, 0);
}

__attribute__((noinline)) pid_t vfork_and_allocate() {
  const pid_t pid = vfork();
  if (pid != 0) return pid;
  churn(5);
  _exit(0);
}
void vforks() { expect_exit(vfork_and_allocate(), 0); }

void clones(int flags) {
  Child child;
  child.flags = flags;
  start(child);
  end(child);
}
void clones_and_waits() { clones(CLONE_VM | CLONE_VFORK); }
void clones_beside() { clones(CLONE_VM); }

void parent_forks_beside() {
  Child child;
  child.flags = CLONE_VM;
  child.may_end.store(false);
  start(child);
  for (int i = 0; i < 3; ++i) {
    forks();
    vforks();
    clones_and_waits();
  }
  end(child);
}

// The child stays on its thread pointer, which the next thread gets.
void* start_and_leave(void* child) {
  start(*static_cast<Child*>(child));
  return nullptr;
}
void* churn_a_while(void*) {
  churn(100);
  return nullptr;
}
void outlives_its_thread() {
  Child child;
  child.flags = CLONE_VM;
  child.may_end.store(false);
  pthread_t thread{};
  check(pthread_create(&thread, nullptr, start_and_leave, &child) == 0, "pthread_create");
  pthread_join(thread, nullptr);
  for (int i = 0; i < 3; ++i) {
    check(pthread_create(&thread, nullptr, churn_a_while, nullptr) == 0, "pthread_create");
    pthread_join(thread, nullptr);
  }
  end(child);
}

#if defined(__x86_64__)
// As libc makes them for its own threads, but nobody registers the rseq area: cpu_id reads as 0.
void with_thread_pointers_of_their_own() {
  auto* const allocate = reinterpret_cast<void* (*)(void*)>(dlsym(RTLD_DEFAULT, "_dl_allocate_tls"));
  auto* const deallocate = reinterpret_cast<void (*)(void*, bool)>(dlsym(RTLD_DEFAULT, "_dl_deallocate_tls"));
  if (allocate == nullptr || deallocate == nullptr) return;
  for (const int flags : {CLONE_VM | CLONE_VFORK, CLONE_VM, CLONE_VM | CLONE_CHILD_CLEARTID}) {
    Child child;
    auto* const words = static_cast<void**>(allocate(nullptr));
    void* const* own;
    asm("mov %%fs:0, %0" : "=r"(own));
    words[0] = words[2] = words;  // its own address, twice; the guards of stacks and pointers
    words[5] = own[5];
    words[6] = own[6];
    child.flags = flags | CLONE_SETTLS;
    child.thread_pointer = words;
    start(child);
    churn(50);
    end(child);
    deallocate(words, true);
  }
}
#endif

// With a copy of the memory, as from fork, while other threads are in the middle of allocating.
void copies() {
  for (int i = 0; i < 100; ++i) {
    Child child;
    child.flags = i % 2 == 0 ? 0 : CLONE_FILES;
    child.end = ends[i % 3];
    start(child);
    churn(5);
    expect_exit(child.pid, 0);
    munmap(child.stack, stack_bytes);
  }
}

void all() {
  each_kind();
  beside(nullptr);
  if (!parent_may_allocate()) return;
  for (void (*const more)() : {forks, vforks, clones_and_waits, clones_beside}) beside(more);
  copies();
  parent_forks_beside();
  outlives_its_thread();
#if defined(__x86_64__)
  with_thread_pointers_of_their_own();
#endif
}

void* all_in_a_thread(void*) {
  all();
  return nullptr;
}

}  // namespace

int main() {
  churn(10);
  check(clone(run, nullptr, CLONE_VM | SIGCHLD, nullptr) == -1 && errno == EINVAL, "clone without a stack");
  each_kind();  // alone, then beside others
  beside(nullptr);
  beside(forks);
  {
    const Allocating others(2);
    all();
    pthread_t second{};
    check(pthread_create(&second, nullptr, all_in_a_thread, nullptr) == 0, "pthread_create");
    if (parent_may_allocate()) all();
    pthread_join(second, nullptr);
  }
  churn(10);
  ok();
}
