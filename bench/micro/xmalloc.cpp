// SPDX-License-Identifier: MIT OR Apache-2.0
// Producers and consumers, after xmalloc-test: half of the threads allocate, in batches, the other half frees what comes
// through a queue. A single thread does both in turn.
//
//   batch=512   blocks   depth=4   batches in the queue per thread
#include "common/program.h"

#include <condition_variable>
#include <iterator>
#include <mutex>

namespace {

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

constexpr std::size_t sizes[] = {8, 12, 16, 16, 24, 24, 32, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024};

class Xmalloc : public bench::Program {
 public:
  Xmalloc(const bench::Options& options, const bench::Run& run)
      : run_(run),
        blocks_(options.number("batch", 512)),
        batches_(run.scaled(15'000)),
        queue_(options.number("depth", 4) * run.threads, run.threads > 1 ? run.threads / 2 : 1) {
    if (blocks_ < 1 || options.number("depth", 4) < 1) bench::Options::fail("an empty batch or queue");
  }

  template <typename Client>
  void work(Client& client, unsigned slot) {
    bench::Random random = run_.random(slot);
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
  Batch* produced(Client& client, bench::Random& random) {
    auto* const batch = static_cast<Batch*>(client.take(sizeof(Batch) + blocks_ * sizeof(void*)));
    for (std::size_t i = 0; i < blocks_; ++i) batch->blocks[i] = client.get(sizes[random.below(std::size(sizes))]);
    return batch;
  }
  template <typename Client>
  void consume(Client& client, Batch* batch) {
    for (std::size_t i = 0; i < blocks_; ++i) client.put(batch->blocks[i]);
    client.give(batch);
  }

  const bench::Run run_;
  const std::size_t blocks_, batches_;
  Queue queue_;
};

}  // namespace

int main(int argc, char** argv) { return bench::run<Xmalloc>(argc, argv); }
