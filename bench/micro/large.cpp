// SPDX-License-Identifier: MIT OR Apache-2.0
// Large blocks, a few at a time, replaced at random; something is written every 64 KiB, so it is the allocator that counts and
// not the kernel's clearing of pages.
//
//   slots=16   per thread   low=16 high=24   powers of two between which the sizes lie
#include "common/program.h"

#include <cmath>

namespace {

class Large : public bench::Program {
 public:
  Large(const bench::Options& options, const bench::Run& run)
      : run_(run),
        slots_(options.number("slots", 16)),
        low_(static_cast<double>(options.number("low", 16))),
        high_(static_cast<double>(options.number("high", 24))),
        steps_(run.scaled(8000)) {
    if (slots_ < 1 || low_ < 3 || high_ < low_ || high_ > 31) bench::Options::fail("that number or range of sizes");
  }

  template <typename Client>
  void work(Client& client, unsigned slot) {
    bench::Random random = run_.random(slot);
    bench::Mapped<void*> table(slots_);
    for (std::size_t step = 0; step < steps_; ++step) {
      void*& block = table[random.below(slots_)];
      if (block != nullptr) client.put(block);
      const auto size = static_cast<std::size_t>(std::exp2(low_ + (high_ - low_) * random.unit()));
      block = client.get(size);
      if constexpr (!Client::checks) touch(block, size);
    }
    for (void* const block : table) {
      if (block != nullptr) client.put(block);
    }
  }

 private:
  static void touch(void* block, std::size_t size) {
    for (std::size_t i = 0; i < size; i += std::size_t{64} << 10) static_cast<volatile char*>(block)[i] = 1;
  }

  const bench::Run run_;
  const std::size_t slots_;
  const double low_, high_;
  const std::size_t steps_;
};

}  // namespace

int main(int argc, char** argv) { return bench::run<Large>(argc, argv); }
