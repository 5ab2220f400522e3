// SPDX-License-Identifier: MIT OR Apache-2.0
// Allocates and frees in everything that runs after main. argv: return, exit, quick_exit, thread (exit is called by another
// thread while threads go on allocating).
#include "env_test.h"

#include <string>
#include <vector>

using namespace env_test;  // NOLINT(google-build-using-namespace): a program

extern "C" void leave_in_library(std::size_t n);

namespace {

constexpr std::size_t sizes[] = {1, 24, 700, 5000, 40000, 300000};
void* from_main[std::size(sizes)];

void work(const char* name) {
  for (const std::size_t size : sizes) check_and_free(filled(size), size);
  check_zeroed(5000);
  say(STDOUT_FILENO, name);
}

struct Static {
  std::vector<std::string> strings;
  const char* name;
  explicit Static(const char* called) : name(called) { strings.emplace_back(1000, 'x'); }
  ~Static() {
    strings.emplace_back(2000, 'y');
    work(name);
  }
};
Static ordinary("static object\n");
__attribute__((init_priority(101))) Static early("static object of priority 101\n");
thread_local Static of_main_thread("thread-local object\n");

void at_exit() {
  for (std::size_t i = 0; i < std::size(sizes); ++i) check_and_free(from_main[i], sizes[i]);
  work("atexit\n");
}
void registered_late() { work("atexit within atexit\n"); }
void registers() { std::atexit(registered_late); }
void at_quick_exit() { work("at_quick_exit\n"); }

__attribute__((destructor)) void destructor() { work("destructor\n"); }
__attribute__((destructor(101))) void late_destructor() { work("destructor of priority 101\n"); }

void fini() { work("fini_array\n"); }
__attribute__((section(".fini_array"), used)) void (*fini_entry)() = fini;

void* exits(void*) { std::exit(0); }

}  // namespace

int main(int argc, char** argv) {
  const char* const how = argc > 1 ? argv[1] : "return";
  of_main_thread.strings.emplace_back(10, 'q');
  leave_in_library(300);
  for (std::size_t i = 0; i < std::size(sizes); ++i) from_main[i] = filled(sizes[i]);
  std::atexit(at_exit);
  std::atexit(registers);
  std::at_quick_exit(at_quick_exit);
  if (std::strcmp(how, "exit") == 0) std::exit(0);
  if (std::strcmp(how, "quick_exit") == 0) std::quick_exit(0);
  if (std::strcmp(how, "thread") == 0) {
    static Allocating* const others = new Allocating(3);  // never joined
    check(others != nullptr, "new");
    pthread_t thread{};
    pthread_create(&thread, nullptr, exits, nullptr);
    for (;;) pause();
  }
  return 0;
}
