// SPDX-License-Identifier: MIT OR Apache-2.0
// Every form of operator new without memory, as [new.delete] has it: the new handler, std::bad_alloc, null.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <malloc.h>
#include <new>
#include <sys/resource.h>
#include <unistd.h>

namespace {

using std::align_val_t;
using std::nothrow;
using std::size_t;

struct Form {
  const char* name;
  void* (*allocate)(size_t);
  bool throws;
};
const Form forms[] = {
    {"new", [](size_t n) { return ::operator new(n); }, true},
    {"new[]", [](size_t n) { return ::operator new[](n); }, true},
    {"aligned new", [](size_t n) { return ::operator new (n, align_val_t{64}); }, true},
    {"aligned new[]", [](size_t n) { return ::operator new[](n, align_val_t{64}); }, true},
    {"nothrow new", [](size_t n) { return ::operator new(n, nothrow); }, false},
    {"nothrow new[]", [](size_t n) { return ::operator new[](n, nothrow); }, false},
    {"nothrow aligned new", [](size_t n) { return ::operator new (n, align_val_t{64}, nothrow); }, false},
    {"nothrow aligned new[]", [](size_t n) { return ::operator new[](n, align_val_t{64}, nothrow); }, false},
    {"new-expression", [](size_t n) -> void* { return new char[n]; }, true},
};

volatile size_t impossible = SIZE_MAX / 2 - 100;
volatile size_t large = size_t{2} << 30;
void* held = nullptr;  // memory that a handler gives up

enum class Result { block, null, bad_alloc, from_handler };
struct FromHandler {};
int handler_calls = 0;

Result result_of(const Form& form, size_t size) {
  try {
    void* const p = form.allocate(size);
    std::free(p);
    return p != nullptr ? Result::block : Result::null;
  } catch (const std::bad_alloc&) {
    return Result::bad_alloc;
  } catch (const FromHandler&) {
    return Result::from_handler;
  }
}

void gives_up_at_the_third_call() {
  if (++handler_calls == 3) std::set_new_handler(nullptr);
}

// As many addresses as there are, and less than a large block more.
void limit_addresses(bool on) {
  rlimit limit;
  getrlimit(RLIMIT_AS, &limit);
  limit.rlim_cur = limit.rlim_max;
  unsigned long pages = 0;
  FILE* const statm = on ? std::fopen("/proc/self/statm", "r") : nullptr;
  if (statm != nullptr && std::fscanf(statm, "%lu", &pages) == 1) limit.rlim_cur = pages * sysconf(_SC_PAGESIZE) + large / 4;
  if (statm != nullptr) std::fclose(statm);
  setrlimit(RLIMIT_AS, &limit);
}

const char* first_fault_of(const Form& form) {
  const Result without_memory = form.throws ? Result::bad_alloc : Result::null;
  std::set_new_handler(nullptr);
  if (result_of(form, impossible) != without_memory) return "without a handler";

  handler_calls = 0;
  std::set_new_handler(gives_up_at_the_third_call);
  if (result_of(form, impossible) != without_memory || handler_calls != 3) return "until there is no handler";

  handler_calls = 0;
  std::set_new_handler([] {
    ++handler_calls;
    throw FromHandler{};
  });
  const Result thrown = form.throws ? Result::from_handler : Result::null;
  if (result_of(form, impossible) != thrown || handler_calls != 1) return "a handler that throws";

  handler_calls = 0;
  held = std::malloc(large);
  std::set_new_handler([] {
    ++handler_calls;
    std::free(held);
  });
  limit_addresses(true);
  const Result found = result_of(form, large);
  limit_addresses(false);
  if (found != Result::block || handler_calls != 1) return "a handler that frees memory";
  return nullptr;
}

}  // namespace

int main() {
  // Both are Terrace's: its class of 112 bytes.
  void* const of_new = ::operator new(100);
  void* const of_malloc = std::malloc(100);
  if (malloc_usable_size(of_new) != 112 || malloc_usable_size(of_malloc) != 112) return 1;
  std::free(of_malloc);
  ::operator delete(of_new);
  for (const Form& form : forms) {
    if (const char* const fault = first_fault_of(form)) {
      std::printf("%s: %s\n", form.name, fault);
      return 2;
    }
  }
  return 0;
}
