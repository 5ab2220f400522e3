// SPDX-License-Identifier: MIT OR Apache-2.0
// Zeroed memory, and blocks that grow: like vectors, half as much again at a time, and like strings, 16 bytes at a time; eight
// of them in turn, so that the memory behind a block is often taken.
//
//   table=4096   bytes, the largest of calloc   vector=262144   string=4096   how far they grow
#include "common/program.h"

#include <array>

namespace {

class CallocRealloc : public bench::Program {
 public:
  CallocRealloc(const bench::Options& options, const bench::Run& run)
      : run_(run),
        table_(options.number("table", 4096)),
        vector_(options.number("vector", std::size_t{256} << 10)),
        string_(options.number("string", 4096)),
        turns_(run.scaled(2400)) {
    if (table_ < smallest || vector_ < smallest || string_ < smallest) bench::Options::fail("that size");
  }

  template <typename Client>
  void work(Client& client, unsigned slot) {
    bench::Random random = run_.random(slot);
    for (std::size_t turn = 0; turn < turns_; ++turn) {
      zeroed(client, random);
      grow(client, random, string_, [](std::size_t size) { return size + 16; });
      if (turn % 8 == 0) grow(client, random, vector_, [](std::size_t size) { return size + size / 2; });
    }
  }

 private:
  static constexpr std::size_t smallest = 16;
  static constexpr std::size_t at_once = 8;

  template <typename Client>
  void zeroed(Client& client, bench::Random& random) {
    std::array<void*, 256> blocks;
    for (void*& block : blocks) {
      const std::size_t each = std::size_t{8} << random.below(3);
      block = client.get_zeroed(random.between(1, table_ / each / 2), each);
    }
    for (void* const block : blocks) client.put(block);
  }

  template <typename Client, typename Next>
  void grow(Client& client, bench::Random& random, std::size_t limit, Next next) {
    std::array<void*, at_once> blocks;
    const std::size_t first = random.between(smallest, 2 * smallest - 1);  // not always multiples of the alignment
    for (void*& block : blocks) block = client.get(first);
    for (std::size_t size = next(first); size <= limit; size = next(size)) {
      for (void*& block : blocks) block = client.resize(block, size);
    }
    for (void* const block : blocks) client.put(block);
  }

  const bench::Run run_;
  const std::size_t table_, vector_, string_, turns_;
};

}  // namespace

int main(int argc, char** argv) { return bench::run<CallocRealloc>(argc, argv); }
