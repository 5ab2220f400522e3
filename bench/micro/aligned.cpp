// SPDX-License-Identifier: MIT OR Apache-2.0
// Aligned blocks: alignments from 32 bytes to two pages, by posix_memalign and by aligned_alloc in turn, replaced at random.
//
//   blocks=1000   per thread   high=13   largest alignment, a power of two   max=2000   bytes, for posix_memalign
#include "common/program.h"

namespace {

class Aligned : public bench::Program {
 public:
  Aligned(const bench::Options& options, const bench::Run& run)
      : run_(run),
        blocks_(options.number("blocks", 1000)),
        high_(options.number("high", 13)),
        max_(options.number("max", 2000)),
        steps_(run.scaled(1'500'000)) {
    if (blocks_ < 1 || high_ < low || high_ > 30 || max_ < bench::Pattern::smallest)
      bench::Options::fail("that alignment or size");
  }

  template <typename Client>
  void work(Client& client, unsigned slot) {
    bench::Random random = run_.random(slot);
    bench::Mapped<void*> table(blocks_);
    for (std::size_t step = 0; step < steps_; ++step) {
      void*& block = table[random.below(blocks_)];
      if (block != nullptr) client.put(block);
      block = step % 2 == 0 ? client.get_aligned(alignment(random), random.between(bench::Pattern::smallest, max_))
                            : multiple(client, random);
    }
    for (void* const block : table) {
      if (block != nullptr) client.put(block);
    }
  }

 private:
  static constexpr std::size_t low = 5;

  std::size_t alignment(bench::Random& random) const { return std::size_t{1} << random.between(low, high_); }

  template <typename Client>
  void* multiple(Client& client, bench::Random& random) {
    const std::size_t a = alignment(random);
    return client.get_aligned_multiple(a, a * random.between(1, 2));
  }

  const bench::Run run_;
  const std::size_t blocks_, high_, max_, steps_;
};

}  // namespace

int main(int argc, char** argv) { return bench::run<Aligned>(argc, argv); }
