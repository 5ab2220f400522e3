// SPDX-License-Identifier: MIT OR Apache-2.0
// A pool of objects per slot, by typed sequences. docs/guide/critical-sections.md explains it.
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <new>
#include <terrace/cs.h>
#include <terrace/stats.h>
#include <thread>
#include <utility>
#include <vector>

// Objects of one type that were given back wait, per slot, for the next one who needs one.
class Message {
 public:
  std::uint64_t number = 0;
  char text[48] = {};
};

class MessagePool {
 public:
  MessagePool() : slots_(terrace_cs_slots()), heads_(new Head[slots_]) {}

  // Nobody may use the pool any more.
  ~MessagePool() {
    for (unsigned s = 0; s < slots_; ++s) {
      void* block = reinterpret_cast<void*>(heads_[s].word >> 8);
      while (block != nullptr) {
        void* const next = reinterpret_cast<void*>(*static_cast<std::uint64_t*>(block) >> 8);
        ::operator delete(block);
        block = next;
      }
    }
  }
  MessagePool(const MessagePool&) = delete;
  MessagePool& operator=(const MessagePool&) = delete;

  Message* make() {
    void* block = nullptr;
    if (terrace_cs_pop(words(), &block) != TERRACE_CS_OK) {
      block = ::operator new(sizeof(Message));
      made_.fetch_add(1, std::memory_order_relaxed);
    }
    return ::new (block) Message;
  }

  void give_back(Message* message) {
    message->~Message();
    // Full, or any other result: nothing was stored, the block is still ours.
    if (terrace_cs_push(words(), most_per_slot, message) != TERRACE_CS_OK) ::operator delete(message);
  }

  long made() const { return made_.load(std::memory_order_relaxed); }

 private:
  static constexpr unsigned most_per_slot = 64;
  struct alignas(64) Head {
    std::uint64_t word = 0;
  };
  terrace_cs_words words() const { return {heads_.get(), sizeof(Head)}; }

  unsigned slots_;
  std::unique_ptr<Head[]> heads_;
  std::atomic<long> made_{0};
};

int main() {
  MessagePool pool;
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&pool] {
      for (std::uint64_t i = 0; i < 1'000'000; ++i) {
        Message* const m = pool.make();
        m->number = i;
        pool.give_back(m);
      }
    });
  }
  for (std::thread& t : threads) t.join();
  std::printf("8,000,000 messages from %s memory; rung %s\n", pool.made() < 8'000'000 ? "reused" : "new", terrace_rung());
  std::printf("blocks made: %ld\n", pool.made());
}
