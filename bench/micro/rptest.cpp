// SPDX-License-Identifier: MIT OR Apache-2.0
// Random sizes, after the benchmark of rpmalloc: every thread fills up a table of blocks, frees stretches of it, and in every
// loop hands a parcel of blocks to its neighbour, who frees it.
//
//   blocks=10000   per thread   parcel=100   blocks   low=4 high=14   powers of two between which the sizes lie, mostly small
#include "common/program.h"

#include <atomic>

namespace {

struct Parcel {
  Parcel* next;
  void* blocks[1];
};

/// Anybody puts, its owner takes all.
struct alignas(128) Mailbox {
  std::atomic<Parcel*> first{nullptr};

  void put(Parcel* parcel) {
    parcel->next = first.load(std::memory_order_relaxed);
    while (!first.compare_exchange_weak(parcel->next, parcel, std::memory_order_release, std::memory_order_relaxed)) {
    }
  }
  Parcel* take_all() { return first.exchange(nullptr, std::memory_order_acquire); }  // pairs with the release in put()
};

class Rptest : public bench::Program {
 public:
  Rptest(const bench::Options& options, const bench::Run& run)
      : run_(run),
        blocks_(options.number("blocks", 10'000)),
        parcel_(options.number("parcel", 100)),
        low_(static_cast<unsigned>(options.number("low", 4))),
        high_(static_cast<unsigned>(options.number("high", 14))),
        loops_(run.scaled(10'000)),
        mailboxes_(run.threads) {
    if (low_ < 3 || high_ <= low_ || high_ > 30) bench::Options::fail("that range of sizes");
    if (parcel_ < 1 || blocks_ < 2 * parcel_) bench::Options::fail("that length of a parcel");
  }

  template <typename Client>
  void work(Client& client, unsigned slot) {
    bench::Random random = run_.random(slot);
    bench::Mapped<void*> table(blocks_);
    std::size_t at = 0;
    for (std::size_t loop = 0; loop < loops_; ++loop) {
      // A stretch of every length up to twice the parcel, with gaps, so that blocks of all ages remain.
      for (std::size_t i = random.between(parcel_, 2 * parcel_); i > 0; --i) {
        at = (at + 1 + random.below(3)) % blocks_;
        if (table[at] != nullptr) client.put(table[at]);
        table[at] = client.get(bench::mostly_small(random, low_, high_));
      }
      mailboxes_[(slot + 1) % run_.threads].put(filled(client, random));
      open_all(client, mailboxes_[slot]);
    }
    for (void* const block : table) {
      if (block != nullptr) client.put(block);
    }
  }

  template <typename Client>
  void finish(Client& client) {
    for (Mailbox& box : mailboxes_) open_all(client, box);
  }

 private:
  template <typename Client>
  Parcel* filled(Client& client, bench::Random& random) {
    auto* const parcel = static_cast<Parcel*>(client.take(sizeof(Parcel) + parcel_ * sizeof(void*)));
    for (std::size_t i = 0; i < parcel_; ++i) parcel->blocks[i] = client.get(bench::mostly_small(random, low_, high_));
    return parcel;
  }
  template <typename Client>
  void open_all(Client& client, Mailbox& box) {
    for (Parcel* parcel = box.take_all(); parcel != nullptr;) {
      Parcel* const next = parcel->next;
      for (std::size_t i = 0; i < parcel_; ++i) client.put(parcel->blocks[i]);
      client.give(parcel);
      parcel = next;
    }
  }

  const bench::Run run_;
  const std::size_t blocks_, parcel_;
  const unsigned low_, high_;
  const std::size_t loops_;
  bench::Mapped<Mailbox> mailboxes_;
};

}  // namespace

int main(int argc, char** argv) { return bench::run<Rptest>(argc, argv); }
