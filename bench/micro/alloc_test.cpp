// SPDX-License-Identifier: MIT OR Apache-2.0
// A big table whose blocks are replaced at random, after alloc-test: sizes follow a Pareto distribution, and so do the places:
// some blocks are replaced all the time, some stay for long.
//
//   slots=65536   per thread   alpha=1.1   of the sizes: the smaller, the more large ones   min=16 max=65536   bytes
#include "common/program.h"

#include <algorithm>
#include <cmath>

namespace {

class AllocTest : public bench::Program {
 public:
  AllocTest(const bench::Options& options, const bench::Run& run)
      : run_(run), slots_(options.number("slots", 65536)), steps_(run.scaled(5'000'000)), sizes_(draws) {
    const double alpha = options.real("alpha", 1.1);
    const std::size_t min = options.number("min", 16);
    const std::size_t max = options.number("max", 65536);
    if (slots_ < 1 || alpha <= 0) bench::Options::fail("a table without slots, or that alpha");
    if (min < bench::Pattern::smallest || max < min) bench::Options::fail("that size");
    bench::Random random(run.seed, draws);
    for (std::size_t& size : sizes_) {
      const double drawn = static_cast<double>(min) * std::pow(1 - random.unit(), -1 / alpha);
      size = static_cast<std::size_t>(std::min(drawn, static_cast<double>(max)));
    }
  }

  template <typename Client>
  void work(Client& client, unsigned slot) {
    bench::Random random = run_.random(slot);
    bench::Mapped<void*> table(slots_);
    for (std::size_t step = 0; step < steps_; ++step) {
      void*& block = table[place(random)];
      if (block != nullptr) client.put(block);
      block = client.get(sizes_[random.below(draws)]);
    }
    for (void* const block : table) {
      if (block != nullptr) client.put(block);
    }
  }

 private:
  static constexpr std::size_t draws = 1 << 14;  // drawn beforehand: pow() takes as long as malloc

  // Of what remains, four in five go to the first fifth, and so on four times.
  std::size_t place(bench::Random& random) const {
    std::size_t range = slots_;
    for (int i = 0; i < 4 && range >= 5 && random.below(5) != 0; ++i) range /= 5;
    return random.below(range);
  }

  const bench::Run run_;
  const std::size_t slots_, steps_;
  bench::Mapped<std::size_t> sizes_;
};

}  // namespace

int main(int argc, char** argv) { return bench::run<AllocTest>(argc, argv); }
