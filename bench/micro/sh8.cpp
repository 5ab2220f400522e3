// SPDX-License-Identifier: MIT OR Apache-2.0
// Random sizes and random orders, after sh8bench: a stretch of a big table is freed, forwards or backwards, and filled again;
// from time to time a thread frees a stretch of what its neighbour allocated.
//
//   blocks=20000   per thread   stretch=400   blocks   max=1000   bytes, mostly few
#include "common/program.h"

#include <mutex>
#include <utility>

namespace {

class Sh8 : public bench::Program {
 public:
  Sh8(const bench::Options& options, const bench::Run& run)
      : run_(run),
        blocks_(options.number("blocks", 20'000)),
        stretch_(options.number("stretch", 400)),
        max_(options.number("max", 1000)),
        turns_(run.scaled(10'000)),
        tables_(run.threads * blocks_),
        locks_(run.threads) {
    if (stretch_ < 1 || blocks_ <= stretch_) bench::Options::fail("that length of a stretch");
    if (max_ <= bench::Pattern::smallest) bench::Options::fail("that size");
  }

  template <typename Client>
  void work(Client& client, unsigned slot) {
    bench::Random random = run_.random(slot);
    bench::Mapped<void*> stretch(stretch_);
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
    for (void* const block : tables_) {
      if (block != nullptr) client.put(block);
    }
  }

 private:
  struct alignas(128) Lock {
    std::mutex mutex;
  };

  // Not locked while it allocates and frees: that is to be measured, not waiting for a thread that was preempted.
  void exchange(unsigned whose, std::size_t from, bench::Mapped<void*>& stretch) {
    const std::lock_guard guard(locks_[whose].mutex);
    for (std::size_t i = 0; i < stretch_; ++i) std::swap(tables_[whose * blocks_ + from + i], stretch[i]);
  }

  template <typename Client>
  void release(Client& client, bench::Mapped<void*>& stretch, bool forwards) {
    for (std::size_t i = 0; i < stretch_; ++i) {
      void*& block = stretch[forwards ? i : stretch_ - 1 - i];
      if (block != nullptr) client.put(std::exchange(block, nullptr));
    }
  }

  // Somebody else may have filled some of the cells in the meantime; what they held comes out.
  template <typename Client>
  void refill(Client& client, bench::Random& random, unsigned whose, std::size_t from, bench::Mapped<void*>& stretch) {
    for (void*& block : stretch) block = client.get(size(random));
    exchange(whose, from, stretch);
    release(client, stretch, true);
  }

  std::size_t size(bench::Random& random) const {
    const std::size_t a = random.between(bench::Pattern::smallest, max_);
    const std::size_t b = random.between(bench::Pattern::smallest, max_);
    return a < b ? a : b;
  }

  const bench::Run run_;
  const std::size_t blocks_, stretch_, max_, turns_;
  bench::Mapped<void*> tables_;
  bench::Mapped<Lock> locks_;
};

}  // namespace

int main(int argc, char** argv) { return bench::run<Sh8>(argc, argv); }
