// SPDX-License-Identifier: MIT OR Apache-2.0
// Phases, after the stress test of mimalloc: in every phase new threads allocate and free, exchange blocks with each other
// through a common table, and leave some for the thread that comes after them.
//
//   phases=150   steps=20000   per phase and thread   low=3 high=12   powers of two between which the sizes lie, mostly small
#include "common/program.h"

#include <atomic>
#include <utility>

namespace {

constexpr std::size_t transfers = 1000;

class Mstress : public bench::Program {
 public:
  Mstress(const bench::Options& options, const bench::Run& run)
      : run_(run),
        phases_(run.scaled(options.number("phases", 150))),
        steps_(options.number("steps", 20'000)),
        low_(static_cast<unsigned>(options.number("low", 3))),
        high_(static_cast<unsigned>(options.number("high", 12))),
        transfer_(transfers) {
    if (steps_ < 4) bench::Options::fail("a phase without steps");
    if (low_ < 3 || high_ <= low_ || high_ > 30) bench::Options::fail("that range of sizes");
  }

  template <typename Client>
  void work(Client& client, unsigned slot) {
    bench::Random random = run_.random(slot);
    bench::Mapped<void*> kept(steps_ / 4);
    for (std::size_t phase = 0; phase < phases_; ++phase) {
      bench::on_new_thread([&] { one_phase(client, random, kept); });
    }
    for (void* const block : kept) release(client, block);
  }

  template <typename Client>
  void finish(Client& client) {
    for (std::atomic<void*>& cell : transfer_) release(client, cell.load(std::memory_order_relaxed));
  }

 private:
  template <typename Client>
  static void release(Client& client, void* block) {
    if (block != nullptr) client.put(block);
  }

  // The blocks of this phase; a quarter of the steps replaces one that is kept for later, its contents come from an earlier
  // phase.
  template <typename Client>
  void one_phase(Client& client, bench::Random& random, bench::Mapped<void*>& kept) {
    bench::Mapped<void*> own(steps_);
    std::size_t count = 0;
    for (std::size_t step = 0; step < steps_; ++step) {
      void* const block = client.get(size(random));
      if (random.below(4) == 0) {
        release(client, std::exchange(kept[random.below(kept.size())], block));
      } else {
        own[count++] = block;
      }
      if (count > 0 && random.below(2) == 0) {
        std::swap(own[random.below(count)], own[count - 1]);
        client.put(own[--count]);
      }
      if (count > 0 && random.below(4) == 0) {
        void*& mine = own[random.below(count)];
        // Pairs with itself: what the other thread wrote into the block is there.
        mine = transfer_[random.below(transfers)].exchange(mine, std::memory_order_acq_rel);
        if (mine == nullptr) mine = own[--count];
      }
    }
    while (count > 0) client.put(own[--count]);
  }

  // One block in a thousand is large.
  std::size_t size(bench::Random& random) const {
    return random.below(1000) == 0 ? std::size_t{64} << high_ >> random.below(4) : bench::mostly_small(random, low_, high_);
  }

  const bench::Run run_;
  const std::size_t phases_, steps_;
  const unsigned low_, high_;
  bench::Mapped<std::atomic<void*>> transfer_;
};

}  // namespace

int main(int argc, char** argv) { return bench::run<Mstress>(argc, argv); }
