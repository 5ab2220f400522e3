// SPDX-License-Identifier: MIT OR Apache-2.0
// Tables of blocks that are replaced or grow, each by its own thread.
#include "common/program.h"
#include "workloads.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>

namespace bench {
namespace {

// larson: Larson and Krishnan's server: every thread replaces random blocks of its table by blocks of random sizes; then it
// ends, and a new thread takes over its table. So most blocks are freed by another thread than the one that allocated them.
//
//   blocks=1000   per thread   min=8 max=1000   their sizes   rounds=10   successors per thread
class Larson : public Program {
  const std::size_t blocks_ = number("blocks", 1000);
  const std::size_t min_ = number("min", 8, Pattern::smallest);
  const std::size_t max_ = number("max", 1000, min_);
  const std::size_t rounds_ = number("rounds", 10);
  const std::size_t replacements_ = run_.scaled(8'000'000);

 public:
  using Program::Program;

  template <typename Client>
  void work(Client& client, unsigned slot) {
    Random random = run_.random(slot);
    Mapped<void*> table(blocks_);
    for (void*& block : table) block = client.get(random.between(min_, max_));
    for (std::size_t round = 0; round < rounds_; ++round) {
      on_new_thread([&] { replace(client, table, random); });
    }
    for (void* const block : table) client.put(block);
  }

 private:
  template <typename Client>
  void replace(Client& client, Mapped<void*>& table, Random& random) {
    for (std::size_t i = 0; i < replacements_ / rounds_; ++i) {
      void*& victim = table[random.below(table.size())];
      client.put(victim);
      victim = client.get(random.between(min_, max_));
    }
  }
};

// alloc_test: a big table whose blocks are replaced at random, after alloc-test: sizes follow a Pareto distribution, and so do
// the places: some blocks are replaced all the time, some stay for long.
//
//   slots=65536   per thread   alpha=1.1   of the sizes: the smaller, the more large ones   min=16 max=65536   bytes
class AllocTest : public Program {
  static constexpr std::size_t draws = 1 << 14;  // drawn beforehand: pow() takes as long as malloc
  const std::size_t slots_ = number("slots", 65536);
  const std::size_t steps_ = run_.scaled(5'000'000);
  Mapped<std::size_t> sizes_{draws};

 public:
  AllocTest(const Options& options, const Run& run) : Program(options, run) {
    const double alpha = options.real("alpha", 1.1);
    const std::size_t min = number("min", 16, Pattern::smallest);
    const std::size_t max = number("max", 65536, min);
    if (alpha <= 0) Options::fail("that alpha");
    Random random(run.seed, draws);
    for (std::size_t& size : sizes_) {
      const double drawn = static_cast<double>(min) * std::pow(1 - random.unit(), -1 / alpha);
      size = static_cast<std::size_t>(std::min(drawn, static_cast<double>(max)));
    }
  }

  template <typename Client>
  void work(Client& client, unsigned slot) {
    Random random = run_.random(slot);
    Mapped<void*> table(slots_);
    for (std::size_t step = 0; step < steps_; ++step) {
      void*& block = table[place(random)];
      if (block != nullptr) client.put(block);
      block = client.get(sizes_[random.below(draws)]);
    }
    client.put_all(table);
  }

 private:
  // Of what remains, four in five go to the first fifth, and so on four times.
  std::size_t place(Random& random) const {
    std::size_t range = slots_;
    for (int i = 0; i < 4 && range >= 5 && random.below(5) != 0; ++i) range /= 5;
    return random.below(range);
  }
};

// aligned: aligned blocks: alignments from 32 bytes to two pages, by posix_memalign and by aligned_alloc in turn, replaced at
// random.
//
//   blocks=1000   per thread   high=13   largest alignment, a power of two   max=2000   bytes, for posix_memalign
class Aligned : public Program {
  static constexpr std::size_t low = 5;
  const std::size_t blocks_ = number("blocks", 1000);
  const std::size_t high_ = number("high", 13, low, 30);
  const std::size_t max_ = number("max", 2000, Pattern::smallest);
  const std::size_t steps_ = run_.scaled(1'500'000);

 public:
  using Program::Program;

  template <typename Client>
  void work(Client& client, unsigned slot) {
    Random random = run_.random(slot);
    Mapped<void*> table(blocks_);
    for (std::size_t step = 0; step < steps_; ++step) {
      void*& block = table[random.below(blocks_)];
      if (block != nullptr) client.put(block);
      block = step % 2 == 0 ? client.get_aligned(alignment(random), random.between(Pattern::smallest, max_))
                            : multiple(client, random);
    }
    client.put_all(table);
  }

 private:
  std::size_t alignment(Random& random) const { return std::size_t{1} << random.between(low, high_); }

  template <typename Client>
  void* multiple(Client& client, Random& random) {
    const std::size_t a = alignment(random);
    return client.get_aligned_multiple(a, a * random.between(1, 2));
  }
};

// large: large blocks, a few at a time, replaced at random; something is written every 64 KiB, so it is the allocator that
// counts and not the kernel's clearing of pages.
//
//   slots=16   per thread   low=16 high=24   powers of two between which the sizes lie
class Large : public Program {
  const std::size_t slots_ = number("slots", 16);
  const std::size_t low_ = number("low", 16, 3);
  const std::size_t high_ = number("high", 24, low_, 31);
  const std::size_t steps_ = run_.scaled(8000);

 public:
  using Program::Program;

  template <typename Client>
  void work(Client& client, unsigned slot) {
    Random random = run_.random(slot);
    Mapped<void*> table(slots_);
    const auto low = static_cast<double>(low_);
    const auto range = static_cast<double>(high_ - low_);
    for (std::size_t step = 0; step < steps_; ++step) {
      void*& block = table[random.below(slots_)];
      if (block != nullptr) client.put(block);
      const auto size = static_cast<std::size_t>(std::exp2(low + range * random.unit()));
      block = client.get(size);
      if constexpr (!Client::checks) touch(block, size);
    }
    client.put_all(table);
  }

 private:
  static void touch(void* block, std::size_t size) {
    for (std::size_t i = 0; i < size; i += std::size_t{64} << 10) static_cast<volatile char*>(block)[i] = 1;
  }
};

// calloc_realloc: zeroed memory, and blocks that grow: like vectors, half as much again at a time, and like strings, 16 bytes
// at a time; eight of them in turn, so that the memory behind a block is often taken.
//
//   table=4096   bytes, the largest of calloc   vector=262144   string=4096   how far they grow
class CallocRealloc : public Program {
  static constexpr std::size_t smallest = 16;
  static constexpr std::size_t at_once = 8;
  const std::size_t table_ = number("table", 4096, smallest);
  const std::size_t vector_ = number("vector", std::size_t{256} << 10, smallest);
  const std::size_t string_ = number("string", 4096, smallest);
  const std::size_t turns_ = run_.scaled(2400);

 public:
  using Program::Program;

  template <typename Client>
  void work(Client& client, unsigned slot) {
    Random random = run_.random(slot);
    for (std::size_t turn = 0; turn < turns_; ++turn) {
      zeroed(client, random);
      grow(client, random, string_, [](std::size_t size) { return size + 16; });
      if (turn % 8 == 0) grow(client, random, vector_, [](std::size_t size) { return size + size / 2; });
    }
  }

 private:
  template <typename Client>
  void zeroed(Client& client, Random& random) {
    std::array<void*, 256> blocks;
    for (void*& block : blocks) {
      const std::size_t each = std::size_t{8} << random.below(3);
      block = client.get_zeroed(random.between(1, table_ / each / 2), each);
    }
    for (void* const block : blocks) client.put(block);
  }

  template <typename Client, typename Next>
  void grow(Client& client, Random& random, std::size_t limit, Next next) {
    std::array<void*, at_once> blocks;
    const std::size_t first = random.between(smallest, 2 * smallest - 1);  // not always multiples of the alignment
    for (void*& block : blocks) block = client.get(first);
    for (std::size_t size = next(first); size <= limit; size = next(size)) {
      for (void*& block : blocks) block = client.resize(block, size);
    }
    for (void* const block : blocks) client.put(block);
  }
};

// simple: blocks of mostly one size, after the simple benchmark of glibc: some tens to some thousands are allocated and freed
// in order, in the opposite order or in turn; below them lie many small blocks that live all the time.
//
//   live=200000   small blocks that stay   size=128
class Simple : public Program {
  static constexpr std::size_t counts[] = {25, 100, 400, 1600};
  const std::size_t live_ = number("live", 200'000, 0);
  const std::size_t size_ = number("size", 128, Pattern::smallest);
  const std::size_t passes_ = run_.scaled(1500);

 public:
  using Program::Program;

  template <typename Client>
  void work(Client& client, unsigned slot) {
    Random random = run_.random(slot);
    Mapped<void*> live(live_);
    for (void*& block : live) block = client.get(random.between(Pattern::smallest, 64));
    Mapped<void*> blocks(counts[std::size(counts) - 1]);
    for (std::size_t pass = 0; pass < passes_; ++pass) {
      // As many blocks of each count.
      for (const std::size_t count : counts) {
        for (std::size_t i = 0; i < blocks.size() / count; ++i) batch(client, &blocks[0], count, static_cast<unsigned>(i % 3));
      }
    }
    for (void* const block : live) client.put(block);
  }

 private:
  template <typename Client>
  void batch(Client& client, void** blocks, std::size_t count, unsigned order) {
    for (std::size_t i = 0; i < count; ++i) blocks[i] = client.get(size_);
    for (std::size_t i = 0; i < count; ++i) {
      // The even ones, then the odd ones; a count is at least 2.
      const std::size_t even = (count + 1) / 2;
      const std::size_t in_turn = i < even ? 2 * i : 2 * (i - even) + 1;
      client.put(blocks[order == 0 ? i : order == 1 ? count - 1 - i : in_turn]);
    }
  }
};

constexpr Workload all[] = {{"larson", run<Larson>}, {"alloc_test", run<AllocTest>},         {"aligned", run<Aligned>},
                            {"large", run<Large>},   {"calloc_realloc", run<CallocRealloc>}, {"simple", run<Simple>}};

}  // namespace

const std::span<const Workload> tables = all;

}  // namespace bench
