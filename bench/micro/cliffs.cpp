// SPDX-License-Identifier: MIT OR Apache-2.0
// Where an allocator's cost may jump: large blocks, many free ones, large alignments, many threads. One case per process.
//
//   bench_cliffs CASE MILLISECONDS [SETTLE]   one line of JSON: ns per operation, peak_rss and, SETTLE milliseconds after all
//                                             was freed, settled_rss, in bytes
//   bench_cliffs                              the names of the cases
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <malloc.h>
#include <pthread.h>
#include <random>
#include <string>
#include <sys/resource.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;
constexpr std::size_t kib = 1024, mib = 1024 * kib;
constexpr std::size_t page = 4096;

volatile char* volatile sink;

void touch(void* p, std::size_t size) {
  for (std::size_t i = 0; i < size; i += page) static_cast<volatile char*>(p)[i] = 1;
}

double nanoseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::nano>(Clock::now() - start).count();
}

bool alone = true;  // no other thread of the process waits for this one: CPU time counts, whatever else the machine does

double now() {
  timespec t = {};
  clock_gettime(alone ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &t);
  return static_cast<double>(t.tv_sec) * 1e9 + static_cast<double>(t.tv_nsec);
}

double process_time() {
  timespec t = {};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) * 1e9 + static_cast<double>(t.tv_nsec);
}

double status(const char* key) {
  double value = 0;
  std::FILE* const file = std::fopen("/proc/self/status", "r");
  char line[256];
  while (file != nullptr && std::fgets(line, sizeof line, file) != nullptr) {
    if (std::strncmp(line, key, std::strlen(key)) == 0) value = std::atof(line + std::strlen(key)) * kib;
  }
  if (file != nullptr) std::fclose(file);
  return value;
}

// Calls work(), which does `operations`, until the time is over. Nanoseconds of one operation.
template <typename Work>
double repeated(int milliseconds, std::size_t operations, Work work) {
  const double start = now();
  double end = start;
  std::size_t done = 0;
  do {
    for (int i = 0; i < 4; ++i) work();
    done += 4 * operations;
    end = now();
  } while (end - start < milliseconds * 1e6);
  return (end - start) / static_cast<double>(done);
}

double pairs(int milliseconds, std::size_t size, std::size_t align = 0) {
  return repeated(milliseconds, 64, [=] {
    for (int i = 0; i < 64; ++i) {
      void* const p = align == 0 ? std::malloc(size) : memalign(align, size);
      sink = static_cast<char*>(p);
      std::free(p);
    }
  });
}

// Per thread, the mean over the threads.
template <typename Work>
double on_threads(unsigned count, Work work) {
  alone = false;
  std::atomic<unsigned> ready = 0;
  std::vector<double> ns(count);
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < count; ++t) {
    threads.emplace_back([&, t] {
      ++ready;
      while (ready != count) std::this_thread::yield();
      ns[t] = work();
    });
  }
  for (std::thread& t : threads) t.join();
  double sum = 0;
  for (const double v : ns) sum += v;
  return sum / count;
}

double live_random(int milliseconds, std::size_t blocks, std::size_t low, std::size_t high) {
  std::vector<void*> live(blocks);
  std::minstd_rand random(7);
  const double ns = repeated(milliseconds, 16, [&] {
    for (int i = 0; i < 16; ++i) {
      void*& p = live[random() % blocks];
      std::free(p);
      const std::size_t size = low + random() % (high - low);
      p = std::malloc(size);
      touch(p, size);
    }
  });
  for (void* const p : live) std::free(p);
  return ns;
}

// Every second block is free, and too small.
double beside_free(std::size_t count) {
  std::vector<void*> blocks;
  for (std::size_t i = 0; i < 2 * count; ++i) blocks.push_back(std::malloc(i % 2 == 0 ? 2200000 : 140000));
  for (std::size_t i = 0; i < blocks.size(); i += 2) std::free(blocks[i]);
  constexpr int asked = 200;
  void* found[asked];
  const double start = now();
  for (void*& p : found) p = std::malloc(3520000);
  const double ns = (now() - start) / asked;
  for (void* const p : found) std::free(p);
  for (std::size_t i = 1; i < blocks.size(); i += 2) std::free(blocks[i]);
  return ns;
}

// The longest that 64 pairs of another thread take while 1 GiB is freed.
double free_of_a_gibibyte() {
  void* const block = std::malloc(1024 * mib);
  touch(block, 1024 * mib);
  std::atomic<bool> stop = false, started = false;
  double worst = 0;
  std::thread other([&] {
    void* held[64] = {};
    while (!stop) {
      const auto start = Clock::now();
      for (void*& p : held) {
        std::free(p);
        p = std::malloc(300000);
        *static_cast<volatile char*>(p) = 1;
      }
      if (started) worst = std::max(worst, nanoseconds_since(start));
      started = true;
    }
    for (void* const p : held) std::free(p);
  });
  while (!started) std::this_thread::yield();
  std::free(block);
  stop = true;
  other.join();
  return worst;
}

void batch(std::vector<void*>& blocks, std::size_t size) {
  for (void*& p : blocks) {
    p = std::malloc(size);
    *static_cast<volatile char*>(p) = 1;
  }
  for (void* const p : blocks) std::free(p);
}

// The time of the CPUs for a block, be they busy or not: in many more threads than there are CPUs, how long one thread takes
// depends on when it runs.
double batches(int milliseconds, std::size_t size, std::size_t count, unsigned threads) {
  std::atomic<unsigned> ready = 0;
  std::atomic<bool> over = false;
  std::atomic<std::size_t> done = 0;
  std::vector<std::thread> all;
  for (unsigned t = 0; t < threads; ++t) {
    all.emplace_back([&] {
      std::vector<void*> blocks(count);
      std::size_t taken = 0;
      ++ready;
      while (ready != threads) std::this_thread::yield();
      for (; !over; taken += count) batch(blocks, size);
      done += taken;
    });
  }
  while (ready != threads) std::this_thread::yield();
  const Clock::time_point start = Clock::now();
  std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
  over = true;
  for (std::thread& t : all) t.join();
  return nanoseconds_since(start) * std::min(threads, std::thread::hardware_concurrency()) / static_cast<double>(done);
}

double growth(int milliseconds, std::size_t to, std::size_t step) {
  return repeated(milliseconds, to / step, [=] {
    char* p = nullptr;
    for (std::size_t size = step; size <= to; size += step) {
      p = static_cast<char*>(std::realloc(p, size));
      p[size - 1] = 1;
    }
    std::free(p);
  });
}

double usable(int milliseconds, std::size_t size) {
  void* const p = std::malloc(size);
  const double ns = repeated(milliseconds, 1000, [=] {
    for (int i = 0; i < 1000; ++i) sink = static_cast<char*>(p) + malloc_usable_size(p);
  });
  std::free(p);
  return ns;
}

// Nothing of that size is left within the limit. What is in use has been so for a while.
double refused(int milliseconds, std::size_t size) {
  std::vector<void*> held;
  for (int i = 0; i < 64; ++i) held.push_back(std::malloc(mib));
  const auto mapped = static_cast<rlim_t>(status("VmSize:"));
  rlimit limit = {};
  getrlimit(RLIMIT_AS, &limit);
  limit.rlim_cur = mapped + size / 2;
  setrlimit(RLIMIT_AS, &limit);
  const double ns = repeated(milliseconds, 16, [=] {
    for (int i = 0; i < 16; ++i) sink = static_cast<char*>(std::malloc(size));
  });
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_AS, &limit);
  for (void* const p : held) std::free(p);
  return ns;
}

void* small_thread(void*) {
  void* blocks[16];
  for (std::size_t i = 0; i < 16; ++i) blocks[i] = std::malloc(16 + 32 * i);
  for (void* const p : blocks) std::free(p);
  return nullptr;
}

pthread_rwlock_t may_end = PTHREAD_RWLOCK_INITIALIZER;  // held by the one that makes the threads
std::atomic<unsigned> waiting = 0;
void* waiting_thread(void*) {
  small_thread(nullptr);
  ++waiting;
  pthread_rwlock_rdlock(&may_end);
  pthread_rwlock_unlock(&may_end);
  return small_thread(nullptr);
}

// CPU time of the process for each thread, which takes and frees 16 small blocks; twice if it waits for the others.
double threads(unsigned count, bool all_alive) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, 64 * kib);
  const unsigned at_once = all_alive ? count : 1;
  std::vector<pthread_t> made(at_once);
  const double start = process_time();
  pthread_rwlock_wrlock(&may_end);
  for (unsigned i = 0; i < count; i += at_once) {
    for (pthread_t& t : made) {
      if (pthread_create(&t, &attributes, all_alive ? waiting_thread : small_thread, nullptr) != 0) std::exit(77);
    }
    while (all_alive && waiting != count) usleep(1000);
    if (all_alive) pthread_rwlock_unlock(&may_end);
    for (const pthread_t t : made) pthread_join(t, nullptr);
  }
  return (process_time() - start) / count;
}

struct Case {
  const char* name;
  double (*run)(int milliseconds);
};

constexpr Case cases[] = {
    {"malloc(131,073), free", [](int ms) { return pairs(ms, 131073); }},
    {"malloc(1 MiB), free", [](int ms) { return pairs(ms, mib); }},
    {"malloc(4 MiB), free", [](int ms) { return pairs(ms, 4 * mib); }},
    {"malloc(64 MiB), free", [](int ms) { return pairs(ms, 64 * mib); }},
    {"malloc(200,000), free, 2 threads", [](int ms) { return on_threads(2, [ms] { return pairs(ms, 200000); }); }},
    {"malloc(1 MiB), free, 2 threads", [](int ms) { return on_threads(2, [ms] { return pairs(ms, mib); }); }},
    {"memalign(4096, 65,536), free", [](int ms) { return pairs(ms, 65536, 4096); }},
    {"one of 100 live of 150-450 KB replaced, touched", [](int ms) { return live_random(ms, 100, 150000, 450000); }},
    {"one of 50 live of 0.75-2.25 MB replaced, touched", [](int ms) { return live_random(ms, 50, 750000, 2250000); }},
    {"malloc(3.5 MB) beside 1,000 free of 2.2 MB", [](int) { return beside_free(1000); }},
    {"malloc(3.5 MB) beside 5,000 free of 2.2 MB", [](int) { return beside_free(5000); }},
    {"longest 64 pairs while another frees 1 GiB", [](int) { return free_of_a_gibibyte(); }},
    {"batches of 10,000 of 256 bytes", [](int ms) { return batches(ms, 256, 10000, 1); }},
    {"batches of 1,000 of 4 KiB", [](int ms) { return batches(ms, 4 * kib, 1000, 1); }},
    {"batches of 1,000 of 64 bytes, 64 threads", [](int ms) { return batches(ms, 64, 1000, 64); }},
    {"realloc by 16 bytes up to 4 KiB", [](int ms) { return growth(ms, 4 * kib, 16); }},
    {"malloc(16 MiB) refused at a limit", [](int ms) { return refused(ms, 16 * mib); }},
    {"malloc(100,000,000) refused at a limit", [](int ms) { return refused(ms, 100000000); }},
    {"15,000 threads one after the other", [](int) { return threads(15000, false); }},
    {"15,000 threads alive", [](int) { return threads(15000, true); }},
    {"malloc_usable_size, 64 bytes", [](int ms) { return usable(ms, 64); }},
    {"malloc_usable_size, 300,000 bytes", [](int ms) { return usable(ms, 300000); }},
};

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    for (const Case& c : cases) std::puts(c.name);
    return argc == 1 ? 0 : 2;
  }
  const Case* const chosen =
      std::find_if(std::begin(cases), std::end(cases), [&](const Case& c) { return c.name == std::string(argv[1]); });
  if (chosen == std::end(cases)) {
    std::fprintf(stderr, "there is no case %s\n", argv[1]);
    return 2;
  }
  const double ns = chosen->run(std::atoi(argv[2]));
  const double peak = status("VmHWM:");
  if (argc > 3) {
    // A little goes on in most programs; some allocators give memory back only then.
    for (int left = std::atoi(argv[3]); left > 0; left -= 10) {
      usleep(10000);
      std::free(std::malloc(200000));
    }
  }
  std::printf("{\"ns\": %.2f, \"peak_rss\": %.0f, \"settled_rss\": %.0f}\n", ns, peak, status("VmRSS:"));
  return 0;
}
