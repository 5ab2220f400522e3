// SPDX-License-Identifier: MIT OR Apache-2.0
// Producers and consumers, block by block: of every two threads one allocates and hands each block to the other through a ring,
// the other one frees it. A thread without a partner does both, so a block is freed when the ring has filled up behind it.
//
// Whoever finds the ring full or empty waits until it is half full: if the two ran in step, it would be the cache line of the
// ring's end and the scheduler that were measured.
//
//   ring=1024   blocks under way, at most 4096   min=16 max=256   their sizes
#include "common/program.h"

#include <atomic>
#include <sched.h>

namespace {

/// One producer, one consumer.
class Ring {
 public:
  static constexpr std::size_t longest = 4096;

  bool put(void* block, std::size_t length) {
    const std::size_t at = put_.load(std::memory_order_relaxed);
    if (at - taken_.load(std::memory_order_acquire) == length) return false;  // its cell has been read
    cells_[at % longest] = block;
    put_.store(at + 1, std::memory_order_release);  // pairs with the acquire in take()
    return true;
  }
  void* take() {
    const std::size_t at = taken_.load(std::memory_order_relaxed);
    if (at == put_.load(std::memory_order_acquire)) return nullptr;
    void* const block = cells_[at % longest];
    taken_.store(at + 1, std::memory_order_release);  // pairs with the acquire in put()
    return block;
  }

  void close() { closed_.store(true, std::memory_order_release); }  // after the last put()
  void wait_for_room(std::size_t length) const {
    wait([&] { return blocks() <= length / 2; });
  }
  void wait_for_blocks(std::size_t length) const {
    wait([&] { return blocks() > length / 2 || closed_.load(std::memory_order_acquire); });
  }

 private:
  std::size_t blocks() const { return put_.load(std::memory_order_relaxed) - taken_.load(std::memory_order_relaxed); }

  // A while without a system call; then the other thread may need this cpu.
  template <typename Condition>
  static void wait(Condition condition) {
    constexpr int patience = 200;
    for (int i = 0; !condition(); ++i) {
      if (i < patience) {
        pause();
      } else {
        sched_yield();
      }
    }
  }
  static void pause() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("isb");
#endif
  }

  alignas(128) std::atomic<std::size_t> put_{0};
  alignas(128) std::atomic<std::size_t> taken_{0};
  std::atomic<bool> closed_{false};
  alignas(128) void* cells_[longest];
};

class Handover : public bench::Program {
 public:
  Handover(const bench::Options& options, const bench::Run& run)
      : run_(run),
        length_(options.number("ring", 1024)),
        min_(options.number("min", 16)),
        max_(options.number("max", 256)),
        blocks_(run.scaled(12'000'000)),
        rings_((run.threads + 1) / 2) {
    if (length_ < 1 || length_ > Ring::longest) bench::Options::fail("that length of the ring");
    if (min_ < bench::Pattern::smallest || max_ < min_) bench::Options::fail("that size");
  }

  template <typename Client>
  void work(Client& client, unsigned slot) {
    Ring& ring = rings_[slot / 2];
    if ((slot ^ 1U) >= run_.threads) {
      alone(client, ring, run_.random(slot));
    } else if (slot % 2 == 0) {
      produce(client, ring, run_.random(slot));
    } else {
      consume(client, ring);
    }
  }

 private:
  template <typename Client>
  void alone(Client& client, Ring& ring, bench::Random random) {
    for (std::size_t i = 0; i < blocks_; ++i) {
      void* const block = client.get(random.between(min_, max_));
      while (!ring.put(block, length_)) client.put(ring.take());
    }
    while (void* const block = ring.take()) client.put(block);
  }
  template <typename Client>
  void produce(Client& client, Ring& ring, bench::Random random) {
    for (std::size_t i = 0; i < blocks_; ++i) {
      void* const block = client.get(random.between(min_, max_));
      while (!ring.put(block, length_)) ring.wait_for_room(length_);
    }
    ring.close();
  }
  template <typename Client>
  void consume(Client& client, Ring& ring) {
    for (std::size_t i = 0; i < blocks_;) {
      if (void* const block = ring.take()) {
        client.put(block);
        ++i;
      } else {
        ring.wait_for_blocks(length_);
      }
    }
  }

  const bench::Run run_;
  const std::size_t length_, min_, max_, blocks_;
  bench::Mapped<Ring> rings_;
};

}  // namespace

int main(int argc, char** argv) { return bench::run<Handover>(argc, argv); }
