// SPDX-License-Identifier: MIT OR Apache-2.0
// Blocks of mostly one size, after the simple benchmark of glibc: some tens to some thousands are allocated and freed in order,
// in the opposite order or in turn; below them lie many small blocks that live all the time.
//
//   live=200000   small blocks that stay   size=128
#include "common/program.h"

#include <iterator>

namespace {

constexpr std::size_t counts[] = {25, 100, 400, 1600};

class Simple : public bench::Program {
 public:
  Simple(const bench::Options& options, const bench::Run& run)
      : run_(run), live_(options.number("live", 200'000)), size_(options.number("size", 128)), passes_(run.scaled(1500)) {
    if (size_ < bench::Pattern::smallest) bench::Options::fail("that size");
  }

  template <typename Client>
  void work(Client& client, unsigned slot) {
    bench::Random random = run_.random(slot);
    bench::Mapped<void*> live(live_);
    for (void*& block : live) block = client.get(random.between(bench::Pattern::smallest, 64));
    bench::Mapped<void*> blocks(counts[std::size(counts) - 1]);
    for (std::size_t pass = 0; pass < passes_; ++pass) {
      // As many blocks of each count.
      for (const std::size_t count : counts) {
        for (std::size_t i = 0; i < blocks.size() / count; ++i) batch(client, &blocks[0], count, static_cast<unsigned>(i % 3));
      }
    }
    for (void* const block : live) client.put(block);
  }

 private:
  template <typename Client>
  void batch(Client& client, void** blocks, std::size_t count, unsigned order) {
    for (std::size_t i = 0; i < count; ++i) blocks[i] = client.get(size_);
    for (std::size_t i = 0; i < count; ++i) {
      // The even ones, then the odd ones; a count is at least 2.
      const std::size_t even = (count + 1) / 2;
      const std::size_t in_turn = i < even ? 2 * i : 2 * (i - even) + 1;
      client.put(blocks[order == 0 ? i : order == 1 ? count - 1 - i : in_turn]);
    }
  }

  const bench::Run run_;
  const std::size_t live_, size_, passes_;
};

}  // namespace

int main(int argc, char** argv) { return bench::run<Simple>(argc, argv); }
