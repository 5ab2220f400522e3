// SPDX-License-Identifier: MIT OR Apache-2.0
// "Why Java's TLABs are so important and why write contention is a performance killer" (Sadiq Jaffer): objects of one size
// from a space with one pointer that all threads move, and from local buffers.
//
// contention THREADS BYTES OBJECTS TURNS      BYTES: 16, 48 or 144; prints one line of JSON, millions of objects per second:
//   cas, add               from the shared pointer itself, by compare-and-swap (as HotSpot without TLABs) and by atomic
//   addition buffer                 from a buffer of 64 KiB per thread lab_thread, lab_core, lab_core_cas
//                          from the LAB engine: the thread's buffer; the core's by critical sections and by compare-and-swap,
//                          also of 64 KiB
//   cas_retries            failed compare-and-swaps per object of `cas`
// A turn begins with an empty space, already touched, and ends when it is full: there is no collection in it. The ways take
// turns, and the median of the turns counts. An object's two words of header are written and the rest is zeroed.
#include "terrace/lab.h"

#include <algorithm>
#include <atomic>
#include <barrier>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sys/mman.h>
#include <thread>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;
constexpr std::size_t lab_bytes = std::size_t{64} << 10;

char* map(std::size_t bytes) {
  void* const p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (p == MAP_FAILED) std::abort();
  return static_cast<char*>(p);
}

class Space {
 public:
  explicit Space(std::size_t bytes) : start_(map(bytes)), end_(start_ + bytes), top_(start_) {
    madvise(start_, bytes, MADV_HUGEPAGE);
    std::memset(start_, 1, bytes);  // faults are no part of the experiment
  }

  void reset() { top_.store(start_); }

  /// nullptr: full.
  char* by_cas(std::size_t bytes, std::uint64_t& retries) {
    char* top = top_.load(std::memory_order_relaxed);
    for (;;) {
      if (bytes > static_cast<std::size_t>(end_ - top)) return nullptr;
      if (top_.compare_exchange_weak(top, top + bytes, std::memory_order_relaxed)) return top;
      ++retries;
    }
  }
  /// Goes past the end, by one object per thread at most.
  char* by_add(std::size_t bytes) {
    char* const top = top_.fetch_add(static_cast<std::ptrdiff_t>(bytes), std::memory_order_relaxed);
    return top < end_ && bytes <= static_cast<std::size_t>(end_ - top) ? top : nullptr;
  }

 private:
  char* start_;
  alignas(128) char* end_;  // read by everybody: not on the line of top_
  alignas(128) std::atomic<char*> top_;
};

// A way is made for a turn; each of its threads makes a Mutator and takes objects until there are none.

template <bool by_cas>
struct Shared {
  explicit Shared(Space& s) : space(s) {}
  Space& space;
  struct Mutator {
    explicit Mutator(Shared& way) : space(way.space) {}
    Space& space;
    std::uint64_t retries = 0;
    void* take(std::size_t bytes) { return by_cas ? space.by_cas(bytes, retries) : space.by_add(bytes); }
  };
};

struct Buffer {
  explicit Buffer(Space& s) : space(s) {}
  Space& space;
  struct Mutator {
    explicit Mutator(Buffer& way) : space(way.space) {}
    Space& space;
    char* top = nullptr;
    char* end = nullptr;
    std::uint64_t retries = 0;
    void* take(std::size_t bytes) {
      if (bytes > static_cast<std::size_t>(end - top)) [[unlikely]]
        if (!refill()) return nullptr;
      char* const object = top;
      top += bytes;
      return object;
    }
    [[gnu::noinline]] bool refill() {
      char* const start = space.by_add(lab_bytes);
      if (start == nullptr) return false;
      top = start;
      end = start + lab_bytes;
      return true;
    }
  };
};

/// One of the engine's levels between the threads and the space.
class Lab {
 public:
  Lab(Space& space, int level, int sync) {
    terrace_lab_config config{};
    config.abi = TERRACE_LAB_ABI;
    config.levels[level].size = lab_bytes;
    config.levels[level].sync = sync;
    config.association = level == TERRACE_LAB_CORE ? TERRACE_LAB_BY_CORE : TERRACE_LAB_BY_THREAD;
    config.alignment = 8;
    config.self = &space;
    config.source = source;
    bytes_ = terrace_lab_heap_bytes(&config);
    if (bytes_ == 0) std::abort();
    memory_ = map(bytes_);
    heap = terrace_lab_init(memory_, &config);
  }
  ~Lab() { munmap(memory_, bytes_); }
  Lab(const Lab&) = delete;
  Lab& operator=(const Lab&) = delete;
  terrace_lab_heap* heap;

  struct Mutator {
    explicit Mutator(Lab& way) { terrace_lab_attach(way.heap, &thread); }
    ~Mutator() { terrace_lab_detach(&thread); }
    Mutator(const Mutator&) = delete;
    Mutator& operator=(const Mutator&) = delete;
    terrace_lab_thread thread;
    std::uint64_t retries = 0;
  };

 private:
  static void* source(void* self, unsigned, std::size_t min, std::size_t desired, std::size_t* actual) {
    std::uint64_t retries = 0;
    for (const std::size_t bytes : {desired, min}) {
      char* const p = static_cast<Space*>(self)->by_cas(bytes, retries);
      *actual = bytes;
      if (p != nullptr) return p;
    }
    return nullptr;
  }

  char* memory_;
  std::size_t bytes_;
};

struct LabThread : Lab {
  explicit LabThread(Space& space) : Lab(space, TERRACE_LAB_THREAD, TERRACE_LAB_CAS) {}
  struct Mutator : Lab::Mutator {
    using Lab::Mutator::Mutator;
    void* take(std::size_t bytes) { return terrace_lab_allocate(&thread, bytes); }
  };
};

template <int sync>
struct LabCore : Lab {
  explicit LabCore(Space& space) : Lab(space, TERRACE_LAB_CORE, sync) {}
  struct Mutator : Lab::Mutator {
    using Lab::Mutator::Mutator;
    void* take(std::size_t bytes) { return terrace_lab_allocate_core(&thread, bytes); }
  };
};

struct Sum {
  std::uint64_t objects = 0;
  std::uint64_t retries = 0;
  Clock::time_point begin, end;
};

/// What a runtime writes before anybody sees the object.
template <std::size_t bytes>
void initialise(void* object) {
  static const std::uint64_t type = 7;
  auto* const words = static_cast<std::uint64_t*>(object);
  words[0] = 1;
  words[1] = reinterpret_cast<std::uint64_t>(&type);
  std::memset(words + 2, 0, bytes - 2 * sizeof *words);
}

template <class Way, std::size_t bytes>
void allocate(Way& way, std::barrier<>& ready, Sum& out) {
  typename Way::Mutator mutator(way);
  ready.arrive_and_wait();
  std::uint64_t objects = 0;
  out.begin = Clock::now();
  while (void* const object = mutator.take(bytes)) {
    initialise<bytes>(object);
    ++objects;
  }
  out.end = Clock::now();
  out.objects = objects;
  out.retries = mutator.retries;
}

struct Result {
  std::vector<double> rates, retries;
};

template <class Way, std::size_t bytes>
void turn(Space& space, unsigned threads, Result& result) {
  space.reset();
  Way way(space);
  std::vector<Sum> sums(threads);
  std::barrier<> ready(static_cast<std::ptrdiff_t>(threads));
  std::vector<std::thread> others;
  for (unsigned i = 1; i < threads; ++i) others.emplace_back([&, i] { allocate<Way, bytes>(way, ready, sums[i]); });
  allocate<Way, bytes>(way, ready, sums[0]);
  for (std::thread& t : others) t.join();
  Sum all = sums[0];
  for (unsigned i = 1; i < threads; ++i) {
    all.objects += sums[i].objects;
    all.retries += sums[i].retries;
    all.begin = std::min(all.begin, sums[i].begin);
    all.end = std::max(all.end, sums[i].end);
  }
  const std::chrono::duration<double, std::micro> took = all.end - all.begin;
  result.rates.push_back(static_cast<double>(all.objects) / took.count());
  result.retries.push_back(static_cast<double>(all.retries) / static_cast<double>(all.objects));
}

double median(std::vector<double>& values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

template <std::size_t bytes>
void measure(unsigned threads, std::size_t objects, int turns) {
  Space space(std::max(objects * bytes / lab_bytes, std::size_t{threads} + 1) * lab_bytes);
  Result cas, add, buffer, lab_thread, lab_core, lab_core_cas;
  for (int t = 0; t < turns; ++t) {
    turn<Shared<true>, bytes>(space, threads, cas);
    turn<Shared<false>, bytes>(space, threads, add);
    turn<Buffer, bytes>(space, threads, buffer);
    turn<LabThread, bytes>(space, threads, lab_thread);
    turn<LabCore<TERRACE_LAB_RESTARTABLE>, bytes>(space, threads, lab_core);
    turn<LabCore<TERRACE_LAB_CAS>, bytes>(space, threads, lab_core_cas);
  }
  std::printf(
      "{\"cas\": %.4f, \"add\": %.4f, \"buffer\": %.4f, \"lab_thread\": %.4f, \"lab_core\": %.4f, \"lab_core_cas\": %.4f, "
      "\"cas_retries\": %.4f}\n",
      median(cas.rates), median(add.rates), median(buffer.rates), median(lab_thread.rates), median(lab_core.rates),
      median(lab_core_cas.rates), median(cas.retries));
}

}  // namespace

int main(int argc, char** argv) {
  unsigned long n[5] = {};
  for (int i = 1; i < argc && i < 5; ++i) n[i] = std::strtoul(argv[i], nullptr, 10);
  const auto threads = static_cast<unsigned>(n[1]);
  const int turns = static_cast<int>(n[4]);
  if (threads == 0 || n[3] == 0 || turns <= 0) n[2] = 0;
  switch (n[2]) {
    case 16: measure<16>(threads, n[3], turns); break;
    case 48: measure<48>(threads, n[3], turns); break;
    case 144: measure<144>(threads, n[3], turns); break;
    default: std::fputs("usage: contention THREADS 16|48|144 OBJECTS TURNS\n", stderr); return 2;
  }
}
