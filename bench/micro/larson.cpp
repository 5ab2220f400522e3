// SPDX-License-Identifier: MIT OR Apache-2.0
// Larson and Krishnan's server: every thread replaces random blocks of its table by blocks of random sizes; then it ends, and a
// new thread takes over its table. So most blocks are freed by another thread than the one that allocated them.
//
//   blocks=1000   per thread   min=8 max=1000   their sizes   rounds=10   successors per thread
#include "common/program.h"

namespace {

class Larson : public bench::Program {
 public:
  Larson(const bench::Options& options, const bench::Run& run)
      : run_(run),
        blocks_(options.number("blocks", 1000)),
        min_(options.number("min", 8)),
        max_(options.number("max", 1000)),
        rounds_(options.number("rounds", 10)),
        replacements_(run.scaled(8'000'000)) {
    if (min_ < bench::Pattern::smallest || max_ < min_) bench::Options::fail("that size");
    if (blocks_ < 1 || rounds_ < 1) bench::Options::fail("a run without blocks or rounds");
  }

  template <typename Client>
  void work(Client& client, unsigned slot) {
    bench::Random random = run_.random(slot);
    bench::Mapped<void*> table(blocks_);
    for (void*& block : table) block = client.get(random.between(min_, max_));
    for (std::size_t round = 0; round < rounds_; ++round) {
      bench::on_new_thread([&] { replace(client, table, random); });
    }
    for (void* const block : table) client.put(block);
  }

 private:
  template <typename Client>
  void replace(Client& client, bench::Mapped<void*>& table, bench::Random& random) {
    for (std::size_t i = 0; i < replacements_ / rounds_; ++i) {
      void*& victim = table[random.below(table.size())];
      client.put(victim);
      victim = client.get(random.between(min_, max_));
    }
  }

  const bench::Run run_;
  const std::size_t blocks_, min_, max_, rounds_, replacements_;
};

}  // namespace

int main(int argc, char** argv) { return bench::run<Larson>(argc, argv); }
