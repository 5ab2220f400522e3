// SPDX-License-Identifier: MIT OR Apache-2.0
// Every size class by itself, from 8 bytes to 64 KiB: pairs of malloc and free, and batches, time per pair. A size that passes
// the fast level by stands out.
//
//   pairs=20000   of each size   batch=64   blocks, fewer of large ones   table=1   a table before the line of JSON
// adds to the line: pair_ns/SIZE and batch_ns/SIZE, the average of the threads, and slowest_pair_ns with slowest_size.
#include "common/program.h"

namespace {

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

class Sizes : public bench::Program {
 public:
  Sizes(const bench::Options& options, const bench::Run& run)
      : run_(run),
        pairs_(run.scaled(options.number("pairs", 20'000))),
        batch_(options.number("batch", 64)),
        table_(options.flag("table")),
        rows_(run.threads) {
    if (batch_ < 1) bench::Options::fail("an empty batch");
  }

  template <typename Client>
  void work(Client& client, unsigned slot) {
    bench::Mapped<void*> blocks(batch_);
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

  void report(bench::Line& line) const {
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
  double fastest(Client& client, bench::Mapped<void*>& blocks, std::size_t size, std::size_t batch) const {
    const std::size_t rounds = pairs_ / repeats / batch + 1;
    double best = 0;
    for (std::size_t repeat = 0; repeat < repeats; ++repeat) {
      const std::uint64_t begin = bench::nanoseconds_now();
      for (std::size_t round = 0; round < rounds; ++round) {
        for (std::size_t i = 0; i < batch; ++i) blocks[i] = client.get(size);
        for (std::size_t i = 0; i < batch; ++i) client.put(blocks[i]);
      }
      const double each = static_cast<double>(bench::nanoseconds_now() - begin) / static_cast<double>(rounds * batch);
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

  const bench::Run run_;
  const std::size_t pairs_, batch_;
  const bool table_;
  bench::Mapped<Rows> rows_;
};

}  // namespace

int main(int argc, char** argv) { return bench::run<Sizes>(argc, argv); }
