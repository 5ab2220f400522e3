// SPDX-License-Identifier: MIT OR Apache-2.0
// What allocates is an execution context, not a thread of the operating system: fibres that one thread runs in turn, and that
// threads take over from each other.
#include "fake.h"

#include <thread>
#include <ucontext.h>

namespace terrace::lab {
namespace {

constexpr std::size_t object = 64;

TEST(Contexts, move_between_threads_with_their_buffer) {
  Fake fake(config_of({1024, 0, 0, 0}));
  terrace_lab_thread fibre;
  terrace_lab_attach(fake.heap, &fibre);
  char* const first = static_cast<char*>(terrace_lab_allocate(&fibre, object));
  char* second = nullptr;
  std::thread([&] { second = static_cast<char*>(terrace_lab_allocate(&fibre, object)); }).join();
  EXPECT_EQ(second, first + object);
  EXPECT_EQ(terrace_lab_allocate(&fibre, object), second + object);
  terrace_lab_detach(&fibre);
  EXPECT_EQ(fake.counts(TERRACE_LAB_THREAD).labs, 1U);
}

struct Fibre {
  ucontext_t context{};
  terrace_lab_thread lab{};
  std::vector<char> stack = std::vector<char>(64 * 1024);
  std::vector<char*> objects;
};
ucontext_t scheduler;
Fibre* running = nullptr;

void allocate_in_turn() {
  for (int i = 0; i < 5; ++i) {
    running->objects.push_back(static_cast<char*>(terrace_lab_allocate(&running->lab, object)));
    Fibre* const self = running;
    swapcontext(&self->context, &scheduler);
  }
}

TEST(Contexts, of_one_thread_have_a_buffer_each) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers do not know of stacks that are swapped";
#endif
  Fake fake(config_of({1024, 8192, 0, 0}));
  std::array<Fibre, 3> fibres;
  for (Fibre& f : fibres) {
    terrace_lab_attach(fake.heap, &f.lab);
    getcontext(&f.context);
    f.context.uc_stack.ss_sp = f.stack.data();
    f.context.uc_stack.ss_size = f.stack.size();
    f.context.uc_link = &scheduler;
    makecontext(&f.context, allocate_in_turn, 0);
  }
  for (int turn = 0; turn < 5; ++turn) {
    for (Fibre& f : fibres) {
      running = &f;
      swapcontext(&scheduler, &f.context);
    }
  }
  for (const Fibre& f : fibres) {
    ASSERT_EQ(f.objects.size(), 5U);
    for (std::size_t i = 1; i < f.objects.size(); ++i) EXPECT_EQ(f.objects[i], f.objects[i - 1] + object);
  }
  EXPECT_EQ(fake.counts(TERRACE_LAB_THREAD).labs, fibres.size());
  for (Fibre& f : fibres) terrace_lab_detach(&f.lab);
}

}  // namespace
}  // namespace terrace::lab
