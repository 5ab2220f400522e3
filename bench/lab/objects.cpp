// SPDX-License-Identifier: MIT OR Apache-2.0
// [MP-RCS] Table 1: what an object costs from the thread's buffer and from the core's, for one thread.
//
// bench_lab_objects KEY=VALUE...      see options.h; besides
//   turns=15 objects=200000   per turn
//   initialise=1              the object is zeroed, not only given a header
// prints the median nanoseconds per object of 48 bytes, of
//   *_inline             in the loop itself, as a compiler emits it for an embedder
//   *_call               a function that compiled code calls: lab_from_...() below
//   engine_*             the engine's functions for the core's buffer
//   core_cas_two         as core_cas_inline, while a second thread takes objects from the same buffer
//   *_1, *_2             controls: as *_inline, and one or two stores more for each object, to a line of the thread
// They take turns.
#include "arch/sequences.h"
#include "options.h"
#include "percpu/ladder.h"
#include "topology/topology.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

using namespace lab_bench;
using namespace terrace;

namespace {
/// What a compiler knows of the heap for which it emits code: constants, but for the sake of this program.
struct Constants {
  arch::Area area;
  std::ptrdiff_t cpu;  // of the cpu number, from the thread pointer
  arch::Words words;
  terrace_lab_thread* thread;  // the core level's functions need it when the buffer is full only
} known;
constexpr std::size_t size = 48;

/// What code in line has in its instructions, and here in registers.
struct Site {
  arch::Area area;
  std::byte* const& base;  // in memory, as in the guide
  const Constants& more;
  terrace_lab_thread* thread;
};
topology::Cores cores;

// [MP-RCS] Figure 7.
[[gnu::always_inline]] inline void* from_thread(terrace_lab_thread* thread) { return terrace_lab_allocate(thread, size); }

// [MP-RCS] Figure 8.
[[gnu::always_inline]] inline void* from_core_cs(const arch::Area& area, std::byte* const& base, terrace_lab_thread* thread) {
  std::uint64_t start;
  if (arch::bump_armed<TERRACE_LAB_BUFFER_SHIFT>(area, base, thread->active, size, start) == arch::Sequence::done) [[likely]]
    return reinterpret_cast<void*>(start);
  return terrace_lab_allocate_core(thread, size);
}

// [HAB] Listing 2.
[[gnu::always_inline]] inline void* from_buffer_cas(const Constants& c, std::size_t number, terrace_lab_thread* thread) {
  auto* const buffer = reinterpret_cast<std::atomic<std::uint64_t>*>(c.words.base + number * c.words.stride);
  std::uint64_t top = buffer[0].load(std::memory_order_acquire);
  std::uint64_t next;
  do {
    next = top + size;
    // Above the end: no room, or the buffer is being refilled.
    if (next > buffer[1].load(std::memory_order_relaxed)) [[unlikely]]
      return terrace_lab_allocate_core(thread, size);
  } while (!buffer[0].compare_exchange_weak(top, next, std::memory_order_acquire, std::memory_order_acquire));
  return reinterpret_cast<void*>(top);
}
[[gnu::always_inline]] inline void* from_core_cas(const Constants& c, terrace_lab_thread* thread) {
  return from_buffer_cas(c, cores.core[static_cast<unsigned>(arch::load_slot(c.cpu))], thread);
}
}  // namespace

extern "C" [[gnu::noinline, gnu::aligned(64)]] void* lab_from_thread(terrace_lab_thread* thread) { return from_thread(thread); }
extern "C" [[gnu::noinline, gnu::aligned(64)]] void* lab_from_core_cs(terrace_lab_thread* thread) {
  return from_core_cs(known.area, known.words.base, thread);
}
extern "C" [[gnu::noinline, gnu::aligned(64)]] void* lab_from_core_cas(terrace_lab_thread* thread) {
  return from_core_cas(known, thread);
}

namespace {

/// A heap, and a thread that takes objects from it by `take(site)`.
class Way {
 public:
  Way(const char* name, const Options& options, int association, int sync)
      : name_(name), young_(options.young(std::size_t{512} << 10), config(options, association, sync)), mutator_(young_) {
    constants_.thread = &mutator_.lab();
    const percpu::Ladder& ladder = percpu::ladder();
    constants_.area = ladder.area;
    const std::ptrdiff_t in_area = ladder.rung == percpu::Rung::mm_cid ? os::rseq_mm_cid : os::rseq_cpu_id;
    constants_.cpu = ladder.area.slot - in_area + os::rseq_cpu_id;
    terrace_lab_layout layout{};
    if (terrace_lab_read_layout(young_.heap(), TERRACE_LAB_CORE, &layout) == 0) {
      constants_.words = {reinterpret_cast<std::byte*>(layout.base), layout.stride};
    }
  }

  template <class Take>
  void measure(std::size_t objects, bool initialise, Take take) {
    known = constants_;
    turns_.push_back(initialise ? turn<true>(objects, take) : turn<false>(objects, take));
  }
  void forget() { turns_.clear(); }
  const char* name() const { return name_; }
  Young& young() { return young_; }
  const Constants& constants() const { return constants_; }
  double median() {
    std::sort(turns_.begin(), turns_.end());
    return turns_[turns_.size() / 2];
  }

 private:
  template <bool initialise, class Take>
  [[gnu::noinline, gnu::aligned(64)]] double turn(std::size_t objects, Take take) {
    arch::Area area = constants_.area;
    std::byte* const base = constants_.words.base;
    terrace_lab_thread* const thread = &mutator_.lab();
    __asm__("" : "+r"(area.critical_section), "+r"(area.slot));  // not loaded anew for each object
    const auto begin = std::chrono::steady_clock::now();
    for (std::size_t i = 0; i < objects; ++i) {
      void* p;
      while ((p = take(Site{area, base, constants_, thread})) == nullptr) [[unlikely]] mutator_.collect();
      if (initialise) std::memset(p, 0, size);
      static_cast<Header*>(p)->bytes = size;
      __asm__ volatile("" ::: "memory");  // no word of a buffer stays in a register, as in a program between two objects
      mutator_.poll();
    }
    const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - begin;
    return took.count() / static_cast<double>(objects);
  }
  static terrace_lab_config config(const Options& options, int association, int sync) {
    terrace_lab_config c = options.config();
    c.levels[association == TERRACE_LAB_BY_CORE ? TERRACE_LAB_CORE : TERRACE_LAB_THREAD].size = options.number("lab", 64 << 10);
    c.levels[TERRACE_LAB_CORE].sync = sync;
    c.association = association;
    return c;
  }

  const char* name_;
  Young young_;
  Young::Mutator mutator_;
  Constants constants_{};
  std::vector<double> turns_;
};

/// Takes objects from buffer 0 of the core level, on another cpu if there is one, while it exists.
class Rival {
 public:
  explicit Rival(Way& way) : young_(way.young()), thread_([this, &way] { run(way); }) {
    while (!started_.load()) std::this_thread::yield();
  }
  ~Rival() {
    over_.store(true);
    const Young::Blocked blocked(young_);  // it may be collecting, and wait for this thread
    thread_.join();
  }
  Rival(const Rival&) = delete;
  Rival& operator=(const Rival&) = delete;

 private:
  void run(Way& way) {
    Young::Mutator mutator(way.young());
    started_.store(true);
    while (!over_.load(std::memory_order_relaxed)) {
      void* p;
      while ((p = from_buffer_cas(way.constants(), 0, &mutator.lab())) == nullptr) mutator.collect();
      static_cast<Header*>(p)->bytes = size;
      mutator.poll();
    }
  }
  Young& young_;
  std::atomic<bool> started_{false}, over_{false};
  std::thread thread_;
};

alignas(128) volatile std::uint64_t stored_to;

constexpr int by_thread = TERRACE_LAB_BY_THREAD, by_core = TERRACE_LAB_BY_CORE;
constexpr int cas = TERRACE_LAB_CAS, cs = TERRACE_LAB_RESTARTABLE;

struct Kind {
  const char* name;
  int association, sync;
  std::function<void(Way&, std::size_t objects, bool initialise)> measure;
};

template <class Take>
Kind kind(const char* name, int association, int sync, Take take) {
  return {name, association, sync, [take](Way& w, std::size_t n, bool initialise) { w.measure(n, initialise, take); }};
}

std::vector<Kind> kinds() {
  const auto thread_inline = [](const Site& s) { return from_thread(s.thread); };
  const auto cs_inline = [](const Site& s) { return from_core_cs(s.area, s.base, s.thread); };
  const auto engine = [](const Site& s) { return terrace_lab_allocate_core(s.thread, size); };
  const auto shared = [](const Site& s) { return from_buffer_cas(s.more, 0, s.thread); };
  const auto one_store_more = [](auto take) {
    return [take](const Site& s) {
      stored_to = 1;
      return take(s);
    };
  };
  return {
      kind("thread_inline", by_thread, cas, thread_inline),
      kind("core_cs_inline", by_core, cs, cs_inline),
      kind("core_cas_inline", by_core, cas, [](const Site& s) { return from_core_cas(s.more, s.thread); }),
      kind("thread_call", by_thread, cas, [](const Site& s) { return lab_from_thread(s.thread); }),
      kind("core_cs_call", by_core, cs, [](const Site& s) { return lab_from_core_cs(s.thread); }),
      kind("core_cas_call", by_core, cas, [](const Site& s) { return lab_from_core_cas(s.thread); }),
      kind("engine_cs", by_core, cs, engine),
      kind("engine_cas", by_core, cas, engine),
      {"core_cas_two", by_core, cas,
       [shared](Way& w, std::size_t n, bool initialise) {
         const Rival rival(w);
         w.measure(n, initialise, shared);
       }},
      kind("thread_1", by_thread, cas, one_store_more(thread_inline)),
      kind("thread_2", by_thread, cas, one_store_more(one_store_more(thread_inline))),
      kind("core_cs_1", by_core, cs, one_store_more(cs_inline)),
      kind("core_cs_2", by_core, cs, one_store_more(one_store_more(cs_inline))),
  };
}

}  // namespace

int main(int argc, char** argv) {
  const Options options(argc, argv);
  const bool sequences = percpu::has_sequences(percpu::ladder().rung) && !percpu::ladder().area_is_ours;
  if (!sequences) {
    std::puts("{\"sequences\": 0}");
    return 0;
  }
  topology::Topology topology;
  topology::read(topology);
  topology::read_cores(cores, topology);
  const std::size_t objects = options.number("objects", 200'000);
  const bool initialise = options.number("initialise", 0) != 0;
  const std::vector<Kind> all = kinds();
  std::vector<std::unique_ptr<Way>> ways;  // a space for each, so that they do not disturb each other
  for (const Kind& k : all) ways.push_back(std::make_unique<Way>(k.name, options, k.association, k.sync));
  const auto round = [&] {
    for (std::size_t i = 0; i < all.size(); ++i) all[i].measure(*ways[i], objects, initialise);
  };
  round();
  for (const auto& way : ways) way->forget();
  for (std::size_t i = 0; i < options.number("turns", 15); ++i) round();
  Line line;
  line.add("sequences", 1);
  for (const auto& way : ways) line.add(way->name(), way->median());
  line.end();
}
