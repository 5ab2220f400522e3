// SPDX-License-Identifier: MIT OR Apache-2.0
// Threads that hand blocks to each other.
#include "common/program.h"
#include "workloads.h"

#include <atomic>
#include <condition_variable>
#include <iterator>
#include <mutex>
#include <sched.h>
#include <utility>

namespace bench {
namespace {

// handover: producers and consumers, block by block: of every two threads one allocates and hands each block to the other
// through a ring, the other one frees it. A thread without a partner does both, so a block is freed when the ring has filled
// up behind it.
//
// Whoever finds the ring full or empty waits until it is half full: if the two ran in step, it would be the cache line of the
// ring's end and the scheduler that were measured.
//
//   ring=1024   blocks under way, at most 4096   min=16 max=256   their sizes

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

class Handover : public Program {
  const std::size_t length_ = number("ring", 1024, 1, Ring::longest);
  const std::size_t min_ = number("min", 16, Pattern::smallest);
  const std::size_t max_ = number("max", 256, min_);
  const std::size_t blocks_ = run_.scaled(12'000'000);
  Mapped<Ring> rings_{(run_.threads + 1) / 2};

 public:
  using Program::Program;

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
  void alone(Client& client, Ring& ring, Random random) {
    for (std::size_t i = 0; i < blocks_; ++i) {
      void* const block = client.get(random.between(min_, max_));
      while (!ring.put(block, length_)) client.put(ring.take());
    }
    while (void* const block = ring.take()) client.put(block);
  }
  template <typename Client>
  void produce(Client& client, Ring& ring, Random random) {
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
};

// xmalloc: producers and consumers, after xmalloc-test: half of the threads allocate, in batches, the other half frees what
// comes through a queue. A single thread does both in turn.
//
//   batch=512   blocks   depth=4   batches in the queue per thread

// A batch is a block itself.
struct Batch {
  Batch* next;
  void* blocks[1];
};

/// First in, first out; put() waits while it is full, take() while it is empty.
class Queue {
 public:
  Queue(std::size_t depth, std::size_t producers) : depth_(depth), producers_(producers) {}

  void put(Batch* batch) {
    std::unique_lock lock(mutex_);
    room_.wait(lock, [this] { return length_ < depth_; });
    batch->next = nullptr;
    *last_ = batch;
    last_ = &batch->next;
    ++length_;
    filled_.notify_one();
  }

  /// Null after the last producer has left.
  Batch* take() {
    std::unique_lock lock(mutex_);
    filled_.wait(lock, [this] { return length_ > 0 || producers_ == 0; });
    Batch* const batch = first_;
    if (batch == nullptr) return nullptr;
    first_ = batch->next;
    if (first_ == nullptr) last_ = &first_;
    --length_;
    room_.notify_one();
    return batch;
  }

  void producer_leaves() {
    const std::lock_guard lock(mutex_);
    if (--producers_ == 0) filled_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable room_, filled_;
  Batch* first_ = nullptr;
  Batch** last_ = &first_;
  std::size_t length_ = 0;
  const std::size_t depth_;
  std::size_t producers_;
};

constexpr std::size_t block_sizes[] = {8, 12, 16, 16, 24, 24, 32, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024};

class Xmalloc : public Program {
  const std::size_t blocks_ = number("batch", 512);
  const std::size_t batches_ = run_.scaled(15'000);
  Queue queue_{number("depth", 4) * run_.threads, run_.threads > 1 ? run_.threads / 2 : 1};

 public:
  using Program::Program;

  template <typename Client>
  void work(Client& client, unsigned slot) {
    Random random = run_.random(slot);
    if (run_.threads == 1) {
      for (std::size_t i = 0; i < batches_; ++i) {
        queue_.put(produced(client, random));
        consume(client, queue_.take());
      }
    } else if (slot < run_.threads / 2) {
      for (std::size_t i = 0; i < batches_; ++i) queue_.put(produced(client, random));
      queue_.producer_leaves();
    } else {
      while (Batch* const batch = queue_.take()) consume(client, batch);
    }
  }

 private:
  template <typename Client>
  Batch* produced(Client& client, Random& random) {
    auto* const batch = static_cast<Batch*>(client.take(sizeof(Batch) + blocks_ * sizeof(void*)));
    for (std::size_t i = 0; i < blocks_; ++i) batch->blocks[i] = client.get(block_sizes[random.below(std::size(block_sizes))]);
    return batch;
  }
  template <typename Client>
  void consume(Client& client, Batch* batch) {
    for (std::size_t i = 0; i < blocks_; ++i) client.put(batch->blocks[i]);
    client.give(batch);
  }
};

// rptest: random sizes, after the benchmark of rpmalloc: every thread fills up a table of blocks, frees stretches of it, and
// in every loop hands a parcel of blocks to its neighbour, who frees it.
//
//   blocks=10000   per thread   parcel=100   blocks   low=4 high=14   powers of two between which the sizes lie, mostly small

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

class Rptest : public Program {
  const std::size_t parcel_ = number("parcel", 100);
  const std::size_t blocks_ = number("blocks", 10'000, 2 * parcel_);
  const std::size_t low_ = number("low", 4, 3);
  const std::size_t high_ = number("high", 14, low_ + 1, 30);
  const std::size_t loops_ = run_.scaled(10'000);
  Mapped<Mailbox> mailboxes_{run_.threads};

 public:
  using Program::Program;

  template <typename Client>
  void work(Client& client, unsigned slot) {
    Random random = run_.random(slot);
    Mapped<void*> table(blocks_);
    std::size_t at = 0;
    for (std::size_t loop = 0; loop < loops_; ++loop) {
      // A stretch of every length up to twice the parcel, with gaps, so that blocks of all ages remain.
      for (std::size_t i = random.between(parcel_, 2 * parcel_); i > 0; --i) {
        at = (at + 1 + random.below(3)) % blocks_;
        if (table[at] != nullptr) client.put(table[at]);
        table[at] = client.get(mostly_small(random, low_, high_));
      }
      mailboxes_[(slot + 1) % run_.threads].put(filled(client, random));
      open_all(client, mailboxes_[slot]);
    }
    client.put_all(table);
  }

  template <typename Client>
  void finish(Client& client) {
    for (Mailbox& box : mailboxes_) open_all(client, box);
  }

 private:
  template <typename Client>
  Parcel* filled(Client& client, Random& random) {
    auto* const parcel = static_cast<Parcel*>(client.take(sizeof(Parcel) + parcel_ * sizeof(void*)));
    for (std::size_t i = 0; i < parcel_; ++i) parcel->blocks[i] = client.get(mostly_small(random, low_, high_));
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
};

// mstress: phases, after the stress test of mimalloc: in every phase new threads allocate and free, exchange blocks with each
// other through a common table, and leave some for the thread that comes after them.
//
//   phases=150   steps=20000   per phase and thread   low=3 high=12   powers of two between which the sizes lie, mostly small

class Mstress : public Program {
  static constexpr std::size_t transfers = 1000;
  const std::size_t phases_ = run_.scaled(number("phases", 150, 0));
  const std::size_t steps_ = number("steps", 20'000, 4);
  const std::size_t low_ = number("low", 3, 3);
  const std::size_t high_ = number("high", 12, low_ + 1, 30);
  Mapped<std::atomic<void*>> transfer_{transfers};

 public:
  using Program::Program;

  template <typename Client>
  void work(Client& client, unsigned slot) {
    Random random = run_.random(slot);
    Mapped<void*> kept(steps_ / 4);
    for (std::size_t phase = 0; phase < phases_; ++phase) {
      on_new_thread([&] { one_phase(client, random, kept); });
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
  void one_phase(Client& client, Random& random, Mapped<void*>& kept) {
    Mapped<void*> own(steps_);
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
  std::size_t size(Random& random) const {
    return random.below(1000) == 0 ? std::size_t{64} << high_ >> random.below(4) : mostly_small(random, low_, high_);
  }
};

constexpr Workload all[] = {
    {"handover", run<Handover>}, {"xmalloc", run<Xmalloc>}, {"rptest", run<Rptest>}, {"mstress", run<Mstress>}};

}  // namespace

const std::span<const Workload> exchange = all;

}  // namespace bench
