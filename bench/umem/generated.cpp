// SPDX-License-Identifier: MIT OR Apache-2.0
// malloc and free as code generated at start, beside those of the library, which read a table of constants: what "Per-thread
// caching in libumem" (Robert Mustacchi, 2012) does, on Terrace's levels. docs/adr/0027 has the numbers.
//
// generated MILLISECONDS TURNS SIZE...      prints one line of JSON: for each size, ns per pair, medians of the turns, of
//   table/SIZE       the library's functions
//   generated/SIZE   the same sequences with what the library loads as constants in the instructions: addresses, offsets,
//   limits compares/SIZE    and without the table of classes: the size is compared with each class's in turn jump/SIZE
//   `generated` by way of one jump through memory, as code that is entered by an exported name has to be
// They take turns; all are called through a pointer. The code is written into pages that become executable when they are no
// longer writable.
#include "arch/sequences.h"
#include "heap/fast_path/fast_path.h"
#include "heap/heap.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <malloc.h>
#include <sys/mman.h>
#include <vector>

#if !defined(__x86_64__)
int main() {
  std::puts("{}");
  return 0;
}
#else
using namespace terrace;

// Holes: 32 bits of 0x5e5e00NN, 64 bits of 0x5e5e00NN5e5e00NN. The offsets within a slot are those of this build.
asm(R"(
  .pushsection .rodata
  .balign 32
bench_pop:
  leaq -1(%rdi), %rdx
  cmpq $0x5e5e0001, %rdx
  jae 8f
  cmpl $0, %fs:0x5e5e0002
  jl 8f
  cmpq $0x5e5e0003, %rdx
  sbbq %rax, %rax
  shrq $4, %rdx
  movabsq $0x5e5e00045e5e0004, %r8
  movzbl (%r8,%rdx), %edx
  leaq 0x2000(,%rax,8), %r8
  .globl bench_pop_known
bench_pop_known:
  movabsq $0x5e5e00055e5e0005, %r9
1:
  leaq 4f(%rip), %rax
  movq %rax, %fs:0x5e5e0006
2:
  movslq %fs:0x5e5e0007, %r11
  imulq %r8, %r11
  movabsq $0x5e5e00085e5e0008, %r10
  addq %r10, %r11
  leaq (%r11,%rdx,8), %r11
  movq 0x5e5e0009(%r11), %r10
  movq -8(%r9,%r10), %rax
  testq %rax, %rax
  jz 8f
  subq $8, %r10
  movq %r10, 0x5e5e0009(%r11)
3:
  incq 0x5e5e000a(%r11)
  ret
8:
  movabsq $0x5e5e000b5e5e000b, %rax
  jmp *%rax
  .byte 0x0f, 0xb9, 0x3d
  .long 0x53053053
5:
  jmp 1b
  .balign 32
4:
  .long 0, 0
  .quad 2b - bench_pop, 3b - 2b, 5b - bench_pop
bench_pop_end:

  .balign 32
bench_push:
  movabsq $0x5e5e000c5e5e000c, %r8
  movq %rdi, %rax
  subq %r8, %rax
  rorq $4, %rax
  movabsq $0x5e5e000d5e5e000d, %rdx
  cmpq %rdx, %rax
  jae 8f
  cmpl $0, %fs:0x5e5e0002
  jl 8f
  shrq $12, %rax
  movabsq $0x5e5e00055e5e0005, %rsi
  movzbl 0x5e5e000e(%r8,%rax), %eax
1:
  leaq 4f(%rip), %r10
  movq %r10, %fs:0x5e5e0006
2:
  movslq %fs:0x5e5e0007, %r9
  shlq $13, %r9
  movabsq $0x5e5e00085e5e0008, %r10
  addq %r10, %r9
  leaq (%r9,%rax,8), %r9
  movq 0x5e5e0009(%r9), %r8
  leaq (%rsi,%r8), %r10
  cmpq %rdi, -8(%r10)
  je 8f
  cmpq $0, (%r10)
  je 8f
  movq %rdi, (%r10)
  addq $8, %r8
  movq %r8, 0x5e5e0009(%r9)
3:
  ret
8:
  movabsq $0x5e5e000f5e5e000f, %rax
  jmp *%rax
  .byte 0x0f, 0xb9, 0x3d
  .long 0x53053053
5:
  jmp 1b
  .balign 32
4:
  .long 0, 0
  .quad 2b - bench_push, 3b - 2b, 5b - bench_push
bench_push_end:
  .popsection

  .pushsection .text
  .globl bench_jump_pop, bench_jump_push
  .balign 32
bench_jump_pop:
  jmp *bench_targets(%rip)
  .balign 32
bench_jump_push:
  jmp *bench_targets+8(%rip)
  .popsection
)");

extern "C" {
extern const std::byte bench_pop[], bench_pop_known[], bench_pop_end[], bench_push[], bench_push_end[];
void* bench_jump_pop(std::size_t);
void bench_jump_push(void*);
void* bench_targets[2];
}

namespace {

using Pop = void* (*)(std::size_t);
using Push = void (*)(void*);

constexpr std::size_t code_bytes = 8192, descriptor_bytes = 32, known_sizes = 16;

// Copies `code`, whose descriptor lies at its end, and puts in what is known now.
class Emitter {
 public:
  explicit Emitter(std::byte* at) : at_(at) {}

  /// Where the copy begins.
  std::byte* copy(const std::byte* begin, const std::byte* end) {
    align(32);
    std::byte* const copied = at_;
    const auto bytes = static_cast<std::size_t>(end - begin);
    std::memcpy(copied, begin, bytes);
    fill(copied, bytes - descriptor_bytes);
    at_ += bytes;
    std::uint64_t descriptor[4];
    std::memcpy(descriptor, at_ - descriptor_bytes, descriptor_bytes);
    descriptor[1] += address_of(copied);
    descriptor[3] += address_of(copied);
    std::memcpy(at_ - descriptor_bytes, descriptor, descriptor_bytes);
    return copied;
  }

  // cmp $limit, %rdi; jbe to the block of that class, for each; the blocks set what bench_pop_known expects.
  std::byte* compares(const std::byte* known, const std::byte* all) {
    align(32);
    std::byte* const begin = at_;
    std::array<std::byte*, known_sizes> jumps;
    test_zero(all);
    for (std::size_t i = 0; i < known_sizes; ++i) {
      put({0x48, 0x81, 0xff});
      put32(static_cast<std::uint32_t>((i + 1) * heap::SizeRule::quantum));
      put({0x0f, 0x86});
      put32(0);
      jumps[i] = at_;
    }
    jump_to(all);
    for (std::size_t i = 0; i < known_sizes; ++i) {
      aim(jumps[i], at_);
      const std::size_t last = i * heap::SizeRule::quantum;
      put({0xba});  // mov $home, %edx
      put32(heap::home_lookup[i]);
      put({0x41, 0xb8});  // mov $stride, %r8d
      put32(static_cast<std::uint32_t>(level::slot_size - (last < heap::fast_path.subline_limit ? sizeof(Word) : 0)));
      jump_to(known);
    }
    return begin;
  }

 private:
  void align(std::size_t to) { at_ += (to - address_of(at_) % to) % to; }
  void put(std::initializer_list<unsigned> bytes) {
    for (const unsigned b : bytes) *at_++ = static_cast<std::byte>(b);
  }
  void put32(std::uint32_t v) {
    std::memcpy(at_, &v, sizeof v);
    at_ += sizeof v;
  }
  static void aim(std::byte* behind, const std::byte* target) {
    const auto distance = static_cast<std::int32_t>(target - behind);
    std::memcpy(behind - sizeof distance, &distance, sizeof distance);
  }
  void jump_to(const std::byte* target) {
    put({0xe9});
    put32(0);
    aim(at_, target);
  }
  void test_zero(const std::byte* all) {
    put({0x48, 0x85, 0xff, 0x0f, 0x84});  // test %rdi, %rdi; jz
    put32(0);
    aim(at_, all);
  }

  static void fill(std::byte* code, std::size_t bytes) {
    const heap::FastPath& f = heap::fast_path;
    const auto area = static_cast<std::uint64_t>(f.area.critical_section);
    const std::array<std::uint64_t, 16> values = {0,
                                                  f.size_limit,
                                                  area - 4,
                                                  f.subline_limit,
                                                  address_of(heap::home_lookup.data()),
                                                  address_of(level::origin()),
                                                  area,
                                                  static_cast<std::uint64_t>(f.area.slot),
                                                  address_of(f.slots),
                                                  level::words_offset,
                                                  level::popped_offset,
                                                  reinterpret_cast<std::uint64_t>(&heap::allocate_slow),
                                                  address_of(f.base),
                                                  f.extent_16ths,
                                                  0 - std::uint64_t{span::Window::map_size},
                                                  reinterpret_cast<std::uint64_t>(&heap::free_slow)};
    for (std::size_t at = 0; at + sizeof(std::uint32_t) <= bytes; ++at) {
      const auto low = at_value<std::uint32_t>(code + at);
      if ((low & 0xffffff00) != 0x5e5e0000) continue;
      const std::uint64_t value = values.at(low & 0xff);
      const bool wide = at + sizeof value <= bytes && at_value<std::uint64_t>(code + at) == (std::uint64_t{low} << 32 | low);
      std::memcpy(code + at, &value, wide ? sizeof value : sizeof low);
      at += wide ? 7 : 3;
    }
  }
  template <class T>
  static T at_value(const std::byte* p) {
    T v;
    std::memcpy(&v, p, sizeof v);
    return v;
  }

  std::byte* at_;
};

struct Subject {
  const char* name;
  Pop pop;
  Push push;
};

double pair_ns(const Subject& s, std::size_t size, std::chrono::nanoseconds length) {
  using Clock = std::chrono::steady_clock;
  Pop volatile const pop_at = s.pop;
  Push volatile const push_at = s.push;
  const Pop pop = pop_at;  // in a register, as nobody knows what it points to
  const Push push = push_at;
  constexpr int batch = 1000;
  std::uint64_t pairs = 0;
  const auto begin = Clock::now();
  auto now = begin;
  do {
    for (int i = 0; i < batch; ++i) push(pop(size));
    pairs += batch;
    now = Clock::now();
  } while (now - begin < length);
  return std::chrono::duration<double, std::nano>(now - begin).count() / static_cast<double>(pairs);
}

// That it does what the library does: blocks that the heap knows, none of them twice.
bool is_sound(const Subject& s, std::size_t size) {
  std::array<void*, 1000> blocks;
  for (void*& b : blocks) b = s.pop(size);
  for (void* b : blocks)
    if (b == nullptr || malloc_usable_size(b) < size || malloc_usable_size(b) > size + size / 4 + 16) return false;
  for (void* b : blocks) s.push(b);
  std::sort(blocks.begin(), blocks.end());
  return std::adjacent_find(blocks.begin(), blocks.end()) == blocks.end();
}

std::vector<Subject> subjects() {
  if (heap::fast_path.size_limit == 0) return {};
  auto* const code =
      static_cast<std::byte*>(mmap(nullptr, code_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  if (code == MAP_FAILED) return {};
  Emitter out(code);
  std::byte* const pop = out.copy(bench_pop, bench_pop_end);
  std::byte* const push = out.copy(bench_push, bench_push_end);
  std::byte* const compares = out.compares(pop + (bench_pop_known - bench_pop), pop);
  if (mprotect(code, code_bytes, PROT_READ | PROT_EXEC) != 0) return {};
  bench_targets[0] = pop;
  bench_targets[1] = push;
  const auto push_generated = reinterpret_cast<Push>(push);
  return {{"table", std::malloc, std::free},
          {"generated", reinterpret_cast<Pop>(pop), push_generated},
          {"compares", reinterpret_cast<Pop>(compares), push_generated},
          {"jump", bench_jump_pop, bench_jump_push}};
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) {
    std::fputs("usage: generated MILLISECONDS TURNS SIZE...\n", stderr);
    return 2;
  }
  std::free(std::malloc(1));
  const std::chrono::milliseconds length(std::strtol(argv[1], nullptr, 10));
  const auto turns = std::max(std::strtoul(argv[2], nullptr, 10), 1UL);
  const char* separator = "";
  std::fputs("{", stdout);
  for (int i = 3; i < argc; ++i) {
    const std::size_t size = std::strtoul(argv[i], nullptr, 10);
    const std::vector<Subject> all = subjects();
    for (const Subject& s : all) {
      if (is_sound(s, size)) continue;
      std::fprintf(stderr, "%s gives blocks of %zu bytes that are not sound\n", s.name, size);
      return 1;
    }
    std::vector<std::vector<double> > ns(all.size());
    for (std::size_t t = 0; t < turns; ++t)
      for (std::size_t s = 0; s < all.size(); ++s) ns[s].push_back(pair_ns(all[s], size, length));
    for (std::size_t s = 0; s < all.size(); ++s, separator = ", ")
      std::printf("%s\"%s/%zu\": %.4f", separator, all[s].name, size, median(ns[s]));
  }
  std::puts("}");
}
#endif
