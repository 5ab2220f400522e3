// SPDX-License-Identifier: MIT OR Apache-2.0
// Batches of one size or of random ones, each size by itself, and false sharing.
#include "common/program.h"
#include "workloads.h"

#include <mutex>
#include <utility>

namespace bench {
namespace {

// sh6: batches of one small size after the other, after sh6bench: a third of a batch is freed in the order of its allocation,
// a third in the opposite order, and the last third stays until the next batch of the size comes along.
//
//   max=1000   bytes   weight=40000   bytes per batch: small sizes come in greater numbers
class Sh6 : public Program {
  static constexpr std::size_t quantum = 8;
  const std::size_t max_ = number("max", 1000, quantum);
  const std::size_t weight_ = number("weight", 40'000, 3 * max_);
  const std::size_t passes_ = run_.scaled(400);

 public:
  using Program::Program;

  template <typename Client>
  void work(Client& client, unsigned) {
    const std::size_t longest = weight_ / quantum;
    const std::size_t sizes = max_ / quantum;
    Mapped<void*> batch(longest);
    Mapped<void*> retained(sizes * longest);
    for (std::size_t pass = 0; pass < passes_; ++pass) {
      for (std::size_t s = 0; s < sizes; ++s) exchange(client, (s + 1) * quantum, batch, &retained[s * longest]);
    }
    client.put_all(retained);
  }

 private:
  template <typename Client>
  void exchange(Client& client, std::size_t size, Mapped<void*>& batch, void** retained) {
    const std::size_t third = weight_ / size / 3;
    for (std::size_t i = 0; i < 3 * third; ++i) batch[i] = client.get(size);
    for (std::size_t i = 0; i < third; ++i) {
      if (retained[i] != nullptr) client.put(retained[i]);
      retained[i] = batch[i];
    }
    for (std::size_t i = third; i < 2 * third; ++i) client.put(batch[i]);
    for (std::size_t i = 3 * third; i > 2 * third; --i) client.put(batch[i - 1]);
  }
};

// sh8: random sizes and random orders, after sh8bench: a stretch of a big table is freed, forwards or backwards, and filled
// again; from time to time a thread frees a stretch of what its neighbour allocated.
//
//   blocks=20000   per thread   stretch=400   blocks   max=1000   bytes, mostly few
class Sh8 : public Program {
  struct alignas(128) Lock {
    std::mutex mutex;
  };

  const std::size_t stretch_ = number("stretch", 400);
  const std::size_t blocks_ = number("blocks", 20'000, stretch_ + 1);
  const std::size_t max_ = number("max", 1000, Pattern::smallest + 1);
  const std::size_t turns_ = run_.scaled(10'000);
  Mapped<void*> tables_{run_.threads * blocks_};
  Mapped<Lock> locks_{run_.threads};

 public:
  using Program::Program;

  template <typename Client>
  void work(Client& client, unsigned slot) {
    Random random = run_.random(slot);
    Mapped<void*> stretch(stretch_);
    for (std::size_t from = 0; from + stretch_ <= blocks_; from += stretch_) refill(client, random, slot, from, stretch);
    for (std::size_t turn = 0; turn < turns_; ++turn) {
      const unsigned whose = random.below(8) == 0 ? (slot + 1) % run_.threads : slot;
      const std::size_t from = random.below(blocks_ - stretch_);
      exchange(whose, from, stretch);
      release(client, stretch, random.below(2) == 0);
      refill(client, random, whose, from, stretch);
    }
  }

  template <typename Client>
  void finish(Client& client) {
    client.put_all(tables_);
  }

 private:
  // Not locked while it allocates and frees: that is to be measured, not waiting for a thread that was preempted.
  void exchange(unsigned whose, std::size_t from, Mapped<void*>& stretch) {
    const std::lock_guard guard(locks_[whose].mutex);
    for (std::size_t i = 0; i < stretch_; ++i) std::swap(tables_[whose * blocks_ + from + i], stretch[i]);
  }

  template <typename Client>
  void release(Client& client, Mapped<void*>& stretch, bool forwards) {
    for (std::size_t i = 0; i < stretch_; ++i) {
      void*& block = stretch[forwards ? i : stretch_ - 1 - i];
      if (block != nullptr) client.put(std::exchange(block, nullptr));
    }
  }

  // Somebody else may have filled some of the cells in the meantime; what they held comes out.
  template <typename Client>
  void refill(Client& client, Random& random, unsigned whose, std::size_t from, Mapped<void*>& stretch) {
    for (void*& block : stretch) block = client.get(size(random));
    exchange(whose, from, stretch);
    release(client, stretch, true);
  }

  std::size_t size(Random& random) const {
    const std::size_t a = random.between(Pattern::smallest, max_);
    const std::size_t b = random.between(Pattern::smallest, max_);
    return a < b ? a : b;
  }
};

// sizes: every size class by itself, from 8 bytes to 64 KiB: pairs of malloc and free, and batches, time per pair. A size that
// passes the fast level by stands out.
//
//   pairs=20000   of each size   batch=64   blocks, fewer of large ones   table=1   a table before the line of JSON
// adds to the line: pair_ns/SIZE and batch_ns/SIZE, the average of the threads, and slowest_pair_ns with slowest_size.

constexpr std::size_t largest = std::size_t{64} << 10;
constexpr std::size_t quantum = 16;
constexpr std::size_t linear_max = 128;
constexpr std::size_t most_sizes = 64;
constexpr std::size_t live_bytes = std::size_t{512} << 10;  // of a batch: it is malloc that counts, not the cache
constexpr std::size_t repeats = 8;                          // the fastest counts, or the first use of a size would

/// 8, then steps of 16 up to 128, then four steps per doubling: what size classes usually are.
constexpr std::size_t next_size(std::size_t size) {
  if (size < quantum) return quantum;
  if (size < linear_max) return size + quantum;
  std::size_t power = linear_max;
  while (power * 2 <= size) power *= 2;
  return size + power / 4;
}

struct Row {
  double pair = 0;
  double batch = 0;
};

struct alignas(128) Rows {
  Row of[most_sizes];
};

class Sizes : public Program {
  const std::size_t pairs_ = run_.scaled(number("pairs", 20'000, 0));
  const std::size_t batch_ = number("batch", 64);
  const bool table_ = options_.flag("table");
  Mapped<Rows> rows_{run_.threads};

 public:
  using Program::Program;

  template <typename Client>
  void work(Client& client, unsigned slot) {
    Mapped<void*> blocks(batch_);
    std::size_t at = 0;
    for (std::size_t size = 8; size <= largest; size = next_size(size), ++at) {
      const std::size_t fit = live_bytes / size;
      rows_[slot].of[at] = {fastest(client, blocks, size, 1), fastest(client, blocks, size, batch_ < fit ? batch_ : fit)};
    }
  }

  template <typename Client>
  void finish(Client&) {
    if (!table_) return;
    std::printf("%8s %10s %10s\n", "bytes", "pair, ns", "batch, ns");
    std::size_t at = 0;
    for (std::size_t size = 8; size <= largest; size = next_size(size), ++at) {
      const Row row = average(at);
      std::printf("%8zu %10.2f %10.2f\n", size, row.pair, row.batch);
    }
  }

  void report(Line& line) const {
    double slowest = 0;
    std::size_t slowest_size = 0;
    std::size_t at = 0;
    for (std::size_t size = 8; size <= largest; size = next_size(size), ++at) {
      const Row row = average(at);
      char key[32];
      std::snprintf(key, sizeof key, "pair_ns/%zu", size);
      line.add(key, row.pair);
      std::snprintf(key, sizeof key, "batch_ns/%zu", size);
      line.add(key, row.batch);
      if (row.pair <= slowest) continue;
      slowest = row.pair;
      slowest_size = size;
    }
    line.add("slowest_pair_ns", slowest).add("slowest_size", static_cast<double>(slowest_size));
  }

 private:
  template <typename Client>
  double fastest(Client& client, Mapped<void*>& blocks, std::size_t size, std::size_t batch) const {
    const std::size_t rounds = pairs_ / repeats / batch + 1;
    double best = 0;
    for (std::size_t repeat = 0; repeat < repeats; ++repeat) {
      const std::uint64_t begin = nanoseconds_now();
      for (std::size_t round = 0; round < rounds; ++round) {
        for (std::size_t i = 0; i < batch; ++i) blocks[i] = client.get(size);
        for (std::size_t i = 0; i < batch; ++i) client.put(blocks[i]);
      }
      const double each = static_cast<double>(nanoseconds_now() - begin) / static_cast<double>(rounds * batch);
      if (repeat == 0 || each < best) best = each;
    }
    return best;
  }

  Row average(std::size_t at) const {
    Row sum;
    for (const Rows& rows : rows_) {
      sum.pair += rows.of[at].pair;
      sum.batch += rows.of[at].batch;
    }
    return {sum.pair / run_.threads, sum.batch / run_.threads};
  }
};

// cache_scratch and cache_thrash: two questions on false sharing, after the benchmarks of Hoard: every thread allocates a
// small block, writes it many times and frees it. If blocks of two threads share a cache line, the writes become slow.
//   cache_thrash: active, the allocator gives neighbouring blocks to different threads
//   cache_scratch: passive, the main thread allocates neighbouring blocks and hands one to each thread, which frees it at once:
//   does the
//     allocator give these very blocks to their new owners?
//
//   bytes=8   a block   writes=500   of every byte of it
template <bool passive>
class FalseSharing : public Program {
  const std::size_t bytes_ = number("bytes", 8);
  const std::size_t writes_ = number("writes", 500, 0);
  const std::size_t turns_ = run_.scaled(120'000);
  Mapped<void*> handed_{run_.threads};

 public:
  using Program::Program;

  template <typename Client>
  void prepare(Client& client) {
    if (!passive) return;
    for (void*& block : handed_) block = client.take(bytes_);
  }

  template <typename Client>
  void work(Client& client, unsigned slot) {
    if (passive) client.give(handed_[slot]);
    for (std::size_t turn = 0; turn < turns_; ++turn) {
      auto* const block = static_cast<volatile unsigned char*>(client.take(bytes_));
      for (std::size_t i = 0; i < bytes_; ++i) block[i] = 0;
      for (std::size_t w = 0; w < writes_; ++w) {
        for (std::size_t i = 0; i < bytes_; ++i) block[i] = static_cast<unsigned char>(block[i] + 1);
      }
      if (Client::checks && block[bytes_ - 1] != static_cast<unsigned char>(writes_))
        broken("somebody else wrote into a block");
      client.give(const_cast<unsigned char*>(block));
    }
  }
};

constexpr Workload all[] = {{"sh6", run<Sh6>},
                            {"sh8", run<Sh8>},
                            {"sizes", run<Sizes>},
                            {"cache_scratch", run<FalseSharing<true>>},
                            {"cache_thrash", run<FalseSharing<false>>}};

}  // namespace

const std::span<const Workload> batches = all;

}  // namespace bench
