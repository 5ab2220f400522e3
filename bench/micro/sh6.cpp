// SPDX-License-Identifier: MIT OR Apache-2.0
// Batches of one small size after the other, after sh6bench: a third of a batch is freed in the order of its allocation, a
// third in the opposite order, and the last third stays until the next batch of the size comes along.
//
//   max=1000   bytes   weight=40000   bytes per batch: small sizes come in greater numbers
#include "common/program.h"

namespace {

constexpr std::size_t quantum = 8;

class Sh6 : public bench::Program {
 public:
  Sh6(const bench::Options& options, const bench::Run& run)
      : max_(options.number("max", 1000)), weight_(options.number("weight", 40'000)), passes_(run.scaled(400)) {
    if (max_ < quantum || weight_ < 3 * max_) bench::Options::fail("that size or weight");
  }

  template <typename Client>
  void work(Client& client, unsigned) {
    const std::size_t longest = weight_ / quantum;
    const std::size_t sizes = max_ / quantum;
    bench::Mapped<void*> batch(longest);
    bench::Mapped<void*> retained(sizes * longest);
    for (std::size_t pass = 0; pass < passes_; ++pass) {
      for (std::size_t s = 0; s < sizes; ++s) exchange(client, (s + 1) * quantum, batch, &retained[s * longest]);
    }
    for (void* const block : retained) {
      if (block != nullptr) client.put(block);
    }
  }

 private:
  template <typename Client>
  void exchange(Client& client, std::size_t size, bench::Mapped<void*>& batch, void** retained) {
    const std::size_t third = weight_ / size / 3;
    for (std::size_t i = 0; i < 3 * third; ++i) batch[i] = client.get(size);
    for (std::size_t i = 0; i < third; ++i) {
      if (retained[i] != nullptr) client.put(retained[i]);
      retained[i] = batch[i];
    }
    for (std::size_t i = third; i < 2 * third; ++i) client.put(batch[i]);
    for (std::size_t i = 3 * third; i > 2 * third; --i) client.put(batch[i - 1]);
  }

  const std::size_t max_, weight_, passes_;
};

}  // namespace

int main(int argc, char** argv) { return bench::run<Sh6>(argc, argv); }
