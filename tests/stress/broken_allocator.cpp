// SPDX-License-Identifier: MIT OR Apache-2.0
// A tiny allocator to preload that is wrong on purpose, to prove that the oracle notices. BROKEN names the fault; it happens at
// every 100th of the calls in which it can happen: counted among all calls, a fault of calloc would be a matter of minutes.
// It never happens to sizes that are a multiple of 16, among which are those that libc needs to start a thread.
//
//   none (the control)  duplicate  overlap  corrupt  dirty  misaligned  forgetful  short
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <sched.h>
#include <sys/mman.h>

namespace {

constexpr std::size_t chunk_size = std::size_t{256} << 20;
constexpr unsigned chances_per_fault = 100;

// In front of every block.
struct Header {
  void* base;         // what the free list has
  std::uint32_t bin;  // log2 of the length at base
  std::uint32_t usable_cut;
};
static_assert(sizeof(Header) == 16);

// At the start of a free piece, where no header ever is: a block that was handed out twice and freed once keeps its header, so
// that the oracle meets the fault, not a crash of this file.
struct alignas(16) Free {
  Free* next;
};

std::atomic_flag lock = ATOMIC_FLAG_INIT;
Free* bins[48];
std::byte* chunk = nullptr;
std::size_t left = 0;
unsigned chances = 0;
constexpr unsigned recent_count = 64;
void* recent[recent_count];  // blocks handed out lately and not freed

struct Guard {
  Guard() {
    while (lock.test_and_set(std::memory_order_acquire)) sched_yield();  // its holder may wait for this cpu
  }
  ~Guard() { lock.clear(std::memory_order_release); }
};

bool broken(const char* fault) {
  static const char* const chosen = std::getenv("BROKEN");
  return chosen != nullptr && std::strcmp(chosen, fault) == 0;
}

bool may_be_hit(std::size_t size) { return size >= 64 && size % 16 != 0; }

// `possible`: this call could show the fault. Under the lock.
bool due(const char* fault, bool possible) { return possible && broken(fault) && ++chances % chances_per_fault == 0; }

Header& header_of(void* p) { return static_cast<Header*>(p)[-1]; }
std::size_t usable(void* p) {
  Header& h = header_of(p);
  const auto offset = static_cast<std::size_t>(static_cast<std::byte*>(p) - static_cast<std::byte*>(h.base));
  return (std::size_t{1} << h.bin) - offset - h.usable_cut;
}

void* take(std::size_t size, std::size_t alignment) {
  if (size > SIZE_MAX / 4 || alignment > SIZE_MAX / 4) return nullptr;
  if (alignment < 16) alignment = 16;
  const std::size_t need = size + sizeof(Free) + sizeof(Header) + alignment;
  std::uint32_t bin = 6;
  while ((std::size_t{1} << bin) < need) ++bin;
  if (bin > 40) return nullptr;
  void* base = bins[bin];
  if (base != nullptr) {
    bins[bin] = bins[bin]->next;
  } else {
    const std::size_t length = std::size_t{1} << bin;
    if (length > left) {
      left = length > chunk_size ? length : chunk_size;
      void* const fresh = mmap(nullptr, left, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
      if (fresh == MAP_FAILED) return nullptr;
      chunk = static_cast<std::byte*>(fresh);
    }
    base = chunk;
    chunk += length;
    left -= length;
  }
  const std::uintptr_t first = reinterpret_cast<std::uintptr_t>(base) + sizeof(Free) + sizeof(Header);
  const std::uintptr_t start = (first + alignment - 1) & ~(alignment - 1);
  void* const p = reinterpret_cast<void*>(start);
  header_of(p) = {.base = base, .bin = bin, .usable_cut = 0};
  return p;
}

void put(void* p) {
  const Header h = header_of(p);
  auto* const f = static_cast<Free*>(h.base);
  f->next = bins[h.bin];
  bins[h.bin] = f;
}

void* with_faults(void* p, std::size_t size, bool zeroed, std::size_t alignment) {
  if (!may_be_hit(size)) return p;
  const bool plain = !zeroed && alignment == 16;
  void* const other = recent[chances % 61 % recent_count];
  const std::size_t room = other != nullptr ? usable(other) : 0;
  if (due("duplicate", plain && room >= size)) return other;
  if (due("overlap", plain && room >= size + 32 && room < 100000)) {
    // In the middle of a block that somebody has.
    void* const inside = static_cast<std::byte*>(other) + 32;
    header_of(inside) = {.base = header_of(other).base, .bin = header_of(other).bin, .usable_cut = 0};
    return inside;
  }
  if (due("corrupt", other != nullptr)) static_cast<unsigned char*>(other)[room / 3] ^= 0x10;
  if (due("dirty", zeroed)) static_cast<unsigned char*>(p)[size - 1] = 1;
  if (due("misaligned", alignment > 16)) {
    void* const shifted = static_cast<std::byte*>(p) + 8;
    std::memmove(&header_of(shifted), &header_of(p), sizeof(Header));
    return shifted;
  }
  if (due("short", usable(p) > size)) header_of(p).usable_cut = static_cast<std::uint32_t>(usable(p) - size + 1);
  return p;
}

void* allocate(std::size_t size, std::size_t alignment, bool zeroed) {
  const Guard guard;
  void* p = take(size, alignment);
  if (p == nullptr) {
    errno = ENOMEM;
    return nullptr;
  }
  if (zeroed) std::memset(p, 0, size);
  p = with_faults(p, size, zeroed, alignment);
  if (may_be_hit(size) && !zeroed) {  // of a zeroed one, the owner might say that it is not zero
    static unsigned at = 0;
    recent[at++ % recent_count] = p;
  }
  return p;
}

}  // namespace

extern "C" {

void* malloc(std::size_t size) { return allocate(size, 16, false); }
void free(void* p) {
  if (p == nullptr) return;
  const Guard guard;
  for (void*& r : recent) r = r == p ? nullptr : r;
  put(p);
}
void* calloc(std::size_t count, std::size_t size) {
  if (size != 0 && count > SIZE_MAX / size) return nullptr;
  return allocate(count * size, 16, true);
}
void* aligned_alloc(std::size_t alignment, std::size_t size) { return allocate(size, alignment, false); }
void* memalign(std::size_t alignment, std::size_t size) { return allocate(size, alignment, false); }
int posix_memalign(void** out, std::size_t alignment, std::size_t size) {
  *out = allocate(size, alignment, false);
  return *out != nullptr ? 0 : ENOMEM;
}
std::size_t malloc_usable_size(void* p) { return p != nullptr ? usable(p) : 0; }
void* realloc(void* p, std::size_t size) {
  if (p == nullptr) return malloc(size);
  void* const fresh = malloc(size);
  if (fresh == nullptr) return nullptr;
  std::size_t n = usable(p) < size ? usable(p) : size;
  {
    const Guard guard;
    if (due("forgetful", n > 64 && may_be_hit(size))) n -= 40;
  }
  std::memcpy(fresh, p, n);
  free(p);
  return fresh;
}
int malloc_trim(std::size_t) { return 0; }
}
