// SPDX-License-Identifier: MIT OR Apache-2.0
// A tiny allocator to preload that is wrong on purpose, to prove that the oracle notices. BROKEN names the fault; it happens at
// every 10,000th call, and never to sizes that are a multiple of 16, among which are those that libc needs to start a thread.
//
//   none (the control)  duplicate  overlap  corrupt  dirty  misaligned  forgetful  short
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <sys/mman.h>

namespace {

constexpr std::size_t chunk_size = std::size_t{256} << 20;
constexpr unsigned calls_between_faults = 10000;

// In front of every block.
struct Header {
  void* base;         // what the free list has
  std::uint32_t bin;  // log2 of the length at base
  std::uint32_t usable_cut;
};
static_assert(sizeof(Header) == 16);

struct Free {
  Free* next;
};

std::atomic_flag lock = ATOMIC_FLAG_INIT;
Free* bins[48];
std::byte* chunk = nullptr;
std::size_t left = 0;
unsigned calls = 0;
void* recent[64];  // blocks handed out lately

struct Guard {
  Guard() {
    while (lock.test_and_set(std::memory_order_acquire)) {
    }
  }
  ~Guard() { lock.clear(std::memory_order_release); }
};

bool broken(const char* fault) {
  static const char* const chosen = std::getenv("BROKEN");
  return chosen != nullptr && std::strcmp(chosen, fault) == 0;
}

bool fault_is_due(std::size_t size) { return size >= 64 && size % 16 != 0 && ++calls % calls_between_faults == 0; }

Header& header_of(void* p) { return static_cast<Header*>(p)[-1]; }
std::size_t usable(void* p) {
  Header& h = header_of(p);
  const auto offset = static_cast<std::size_t>(static_cast<std::byte*>(p) - static_cast<std::byte*>(h.base));
  return (std::size_t{1} << h.bin) - offset - h.usable_cut;
}

void* take(std::size_t size, std::size_t alignment) {
  if (size > SIZE_MAX / 4 || alignment > SIZE_MAX / 4) return nullptr;
  if (alignment < 16) alignment = 16;
  const std::size_t need = size + sizeof(Header) + alignment;
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
  const std::uintptr_t start = (reinterpret_cast<std::uintptr_t>(base) + sizeof(Header) + alignment - 1) & ~(alignment - 1);
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
  if (p == nullptr || !fault_is_due(size)) return p;
  void* const other = recent[calls % 61 % 64];
  if (broken("duplicate") && other != nullptr && !zeroed && alignment == 16 && usable(other) >= size) return other;
  if (broken("overlap") && !zeroed && alignment == 16) {
    // In the middle of a block that somebody has.
    if (other != nullptr && usable(other) >= size + 32 && usable(other) < 100000) {
      void* const inside = static_cast<std::byte*>(other) + 32;
      header_of(inside) = {.base = header_of(other).base, .bin = header_of(other).bin, .usable_cut = 0};
      return inside;
    }
  }
  if (broken("corrupt") && other != nullptr) static_cast<unsigned char*>(other)[usable(other) / 3] ^= 0x10;
  if (broken("dirty") && zeroed) static_cast<unsigned char*>(p)[size - 1] = 1;
  if (broken("misaligned") && alignment > 16) {
    void* const shifted = static_cast<std::byte*>(p) + 8;
    std::memmove(&header_of(shifted), &header_of(p), sizeof(Header));
    return shifted;
  }
  if (broken("short") && usable(p) > size) header_of(p).usable_cut = static_cast<std::uint32_t>(usable(p) - size + 1);
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
  if (size >= 64 && size % 16 != 0) {
    static unsigned at = 0;
    recent[at++ % 64] = p;
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
  if (broken("forgetful") && n > 64 && calls % 100 == 0) n -= 40;
  std::memcpy(fresh, p, n);
  free(p);
  return fresh;
}
int malloc_trim(std::size_t) { return 0; }
}
