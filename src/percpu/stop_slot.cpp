// SPDX-License-Identifier: MIT OR Apache-2.0
#include "percpu/stop_slot.h"

#include "os/membarrier.h"

namespace terrace::percpu {
namespace {

// [S1] acq_rel: acquire pairs with nothing of the owner's (its commits are plain stores, ordered by the barrier), but with
// start_words() of an earlier stopper; release keeps our earlier writes before the word is seen stopped.
void stop_word(ChainWord& word, ChainWord& held) noexcept {
  ChainWord w = __atomic_load_n(&word, __ATOMIC_RELAXED);
  while (w != chain::stopped &&
         !__atomic_compare_exchange_n(&word, &w, chain::stopped, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
  }
  if (w != chain::stopped) held = w;
}

}  // namespace

bool stop_words(std::span<ChainWord> words, ChainWord* held) noexcept {
  for (;;) {
    for (std::size_t i = 0; i < words.size(); ++i) stop_word(words[i], held[i]);
    if (!os::restart_all_sequences()) {
      // Undo what still stands: a commit in flight may have replaced `stopped`, and then the word is the owner's.
      for (std::size_t i = 0; i < words.size(); ++i) {
        ChainWord expected = chain::stopped;
        __atomic_compare_exchange_n(&words[i], &expected, held[i], false, __ATOMIC_RELEASE, __ATOMIC_RELAXED);
      }
      return false;
    }
    bool all = true;
    for (const ChainWord& word : words) all = all && __atomic_load_n(&word, __ATOMIC_RELAXED) == chain::stopped;
    if (all) return true;
  }
}

void start_words(std::span<ChainWord> words) noexcept {
  // [S1] release: what was done with the blocks comes before their owner may work again.
  for (ChainWord& word : words) __atomic_store_n(&word, chain::empty, __ATOMIC_RELEASE);
}

}  // namespace terrace::percpu
