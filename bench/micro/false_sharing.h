// SPDX-License-Identifier: MIT OR Apache-2.0
// Two questions on false sharing, after the benchmarks of Hoard: every thread allocates a small block, writes it many times
// and frees it. If blocks of two threads share a cache line, the writes become slow.
//   active    the allocator gives neighbouring blocks to different threads
//   passive   the main thread allocates neighbouring blocks and hands one to each thread, which frees it at once: does the
//             allocator give these very blocks to their new owners?
//
//   bytes=8   a block   writes=500   of every byte of it
#pragma once

#include "common/program.h"

namespace bench {

template <bool passive>
class FalseSharing : public Program {
 public:
  FalseSharing(const Options& options, const Run& run)
      : bytes_(options.number("bytes", 8)),
        writes_(options.number("writes", 500)),
        turns_(run.scaled(120'000)),
        handed_(run.threads) {
    if (bytes_ < 1) Options::fail("a block without bytes");
  }

  template <typename Client>
  void prepare(Client& client) {
    if (!passive) return;
    for (void*& block : handed_) block = client.take(bytes_);
  }

  template <typename Client>
  void work(Client& client, unsigned slot) {
    if (passive) client.give(handed_[slot]);
    for (std::size_t turn = 0; turn < turns_; ++turn) {
      auto* const block = static_cast<volatile unsigned char*>(client.take(bytes_));
      for (std::size_t i = 0; i < bytes_; ++i) block[i] = 0;
      for (std::size_t w = 0; w < writes_; ++w) {
        for (std::size_t i = 0; i < bytes_; ++i) block[i] = static_cast<unsigned char>(block[i] + 1);
      }
      if (Client::checks && block[bytes_ - 1] != static_cast<unsigned char>(writes_))
        broken("somebody else wrote into a block");
      client.give(const_cast<unsigned char*>(block));
    }
  }

 private:
  const std::size_t bytes_, writes_, turns_;
  Mapped<void*> handed_;
};

}  // namespace bench
