// SPDX-License-Identifier: MIT OR Apache-2.0
// [MP-RCS] Table 1: what an object costs from the thread's buffer and from the core's, for one thread.
//
// bench_lab_objects KEY=VALUE...      see options.h; besides
//   size=48 turns=15 objects=200000   per turn
// prints the median nanoseconds per object of
//   thread, core_cs, core_cas           functions as a compiler would emit them, equally out of line: lab_from_...() below
//   engine_cs, engine_cas               the engine's functions for the core's buffer
// They take turns.
#include "arch/sequences.h"
#include "options.h"
#include "percpu/ladder.h"
#include "topology/topology.h"

#include <algorithm>
#include <cstring>
#include <vector>

using namespace lab_bench;
using namespace terrace;

namespace {
/// What a compiler knows of the heap for which it emits functions: constants, but for the sake of this program.
struct Constants {
  arch::Area area;
  std::ptrdiff_t cpu;  // of the cpu number, from the thread pointer
  arch::Words words;
  terrace_lab_thread* thread;  // the core level's functions need it when the buffer is full only
} known;
constexpr int shift = 8;  // the stride is a constant, too
topology::Cores cores;
}  // namespace

// [MP-RCS] Figure 7.
extern "C" [[gnu::noinline, gnu::aligned(64)]] void* lab_from_thread(terrace_lab_thread* thread, std::size_t bytes) {
  return terrace_lab_allocate(thread, bytes);
}

// [MP-RCS] Figure 8.
extern "C" [[gnu::noinline, gnu::aligned(64)]] void* lab_from_core_cs(terrace_lab_thread*, std::size_t bytes) {
  std::uint64_t start;
  if (arch::bump_below_2_63<shift>(known.area, known.words.base, bytes, start) == arch::Sequence::done) [[likely]]
    return reinterpret_cast<void*>(start);
  return terrace_lab_allocate_core(known.thread, bytes);
}

// [HAB] Listing 2.
extern "C" [[gnu::noinline, gnu::aligned(64)]] void* lab_from_core_cas(terrace_lab_thread*, std::size_t bytes) {
  const std::size_t core = cores.core[static_cast<unsigned>(arch::load_slot(known.cpu))];
  auto* const buffer = reinterpret_cast<std::atomic<std::uint64_t>*>(known.words.base + core * known.words.stride);
  std::uint64_t top = buffer[0].load(std::memory_order_acquire);
  std::uint64_t next;
  do {
    // Above the end, or no sum at all: the buffer is being refilled.
    if (__builtin_add_overflow(top, bytes, &next) || next > buffer[1].load(std::memory_order_relaxed)) [[unlikely]]
      return terrace_lab_allocate_core(known.thread, bytes);
  } while (!buffer[0].compare_exchange_weak(top, next, std::memory_order_acquire, std::memory_order_acquire));
  return reinterpret_cast<void*>(top);
}

namespace {

using Function = void* (*)(terrace_lab_thread*, std::size_t);

/// A space of its own for each way, so that they do not disturb each other.
class Way {
 public:
  Way(const char* name, const Options& options, int association, int sync, Function function)
      : name_(name),
        function_(function),
        young_(options.young(std::size_t{2} << 20), config(options, association, sync)),
        mutator_(young_) {
    constants_.thread = &mutator_.lab();
    const percpu::Ladder& ladder = percpu::ladder();
    constants_.area = ladder.area;
    const std::ptrdiff_t in_area = ladder.rung == percpu::Rung::mm_cid ? os::rseq_mm_cid : os::rseq_cpu_id;
    constants_.cpu = ladder.area.slot - in_area + os::rseq_cpu_id;
    terrace_lab_layout layout{};
    if (terrace_lab_read_layout(young_.heap(), TERRACE_LAB_CORE, &layout) == 0) {
      if (layout.stride != std::size_t{1} << shift) std::abort();
      constants_.words = {reinterpret_cast<std::byte*>(layout.base), layout.stride};
    }
  }

  double turn(std::size_t objects, std::size_t bytes, bool initialise) {
    known = constants_;
    terrace_lab_thread* const thread = &mutator_.lab();
    const auto begin = std::chrono::steady_clock::now();
    for (std::size_t i = 0; i < objects; ++i) {
      void* p;
      while ((p = function_(thread, bytes)) == nullptr) mutator_.collect();
      if (initialise) std::memset(p, 0, bytes);
      static_cast<Header*>(p)->bytes = bytes;
    }
    const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - begin;
    return took.count() / static_cast<double>(objects);
  }
  void measure(std::size_t objects, std::size_t bytes, bool initialise) { turns_.push_back(turn(objects, bytes, initialise)); }
  const char* name() const { return name_; }
  double median() {
    std::sort(turns_.begin(), turns_.end());
    return turns_[turns_.size() / 2];
  }

 private:
  static terrace_lab_config config(const Options& options, int association, int sync) {
    terrace_lab_config c = options.config();
    c.levels[association == TERRACE_LAB_BY_CORE ? TERRACE_LAB_CORE : TERRACE_LAB_THREAD].size = options.number("lab", 64 << 10);
    c.levels[TERRACE_LAB_CORE].sync = sync;
    c.association = association;
    return c;
  }

  const char* name_;
  Function function_;
  Young young_;
  Young::Mutator mutator_;
  Constants constants_{};
  std::vector<double> turns_;
};

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
  constexpr int by_thread = TERRACE_LAB_BY_THREAD, by_core = TERRACE_LAB_BY_CORE;
  constexpr int cas = TERRACE_LAB_CAS, cs = TERRACE_LAB_RESTARTABLE;
  Way ways[] = {{"thread", options, by_thread, cas, lab_from_thread},
                {"core_cs", options, by_core, cs, lab_from_core_cs},
                {"core_cas", options, by_core, cas, lab_from_core_cas},
                {"engine_cs", options, by_core, cs, terrace_lab_allocate_core},
                {"engine_cas", options, by_core, cas, terrace_lab_allocate_core}};
  const std::size_t objects = options.number("objects", 200'000), bytes = options.number("size", 48);
  const bool initialise = options.number("initialise", 0) != 0;
  for (Way& way : ways) way.turn(objects, bytes, initialise);
  for (std::size_t i = 0; i < options.number("turns", 15); ++i) {
    for (Way& way : ways) way.measure(objects, bytes, initialise);
  }
  Line line;
  line.add("sequences", 1);
  for (Way& way : ways) line.add(way.name(), way.median());
  line.end();
}
