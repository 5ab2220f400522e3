// SPDX-License-Identifier: MIT OR Apache-2.0
#include "percpu/stop_slot.h"

#include "os/membarrier.h"

namespace terrace::percpu {
namespace {

// [S1] acq_rel: acquire pairs with nothing of the owner's (its commits are plain stores, ordered by the barrier), but with
// start_words() of an earlier stopper; release keeps our earlier writes before the word is seen stopped.
void stop_word(Word& word, Word& held) noexcept {
  Word w = __atomic_load_n(&word, __ATOMIC_RELAXED);
  while (w != stopped_word &&
         !__atomic_compare_exchange_n(&word, &w, stopped_word, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
  }
  if (w != stopped_word) held = w;
}

}  // namespace

bool stop_words(std::span<Word> words, Word* held) noexcept {
  for (;;) {
    for (std::size_t i = 0; i < words.size(); ++i) stop_word(words[i], held[i]);
    if (!os::restart_all_sequences()) {
      // Undo what still stands: a commit in flight may have replaced `stopped`, and then the word is the owner's.
      for (std::size_t i = 0; i < words.size(); ++i) {
        Word expected = stopped_word;
        __atomic_compare_exchange_n(&words[i], &expected, held[i], false, __ATOMIC_RELEASE, __ATOMIC_RELAXED);
      }
      return false;
    }
    bool all = true;
    for (const Word& word : words) all = all && __atomic_load_n(&word, __ATOMIC_RELAXED) == stopped_word;
    if (all) return true;
  }
}

void start_words(std::span<Word> words) noexcept {
  // [S1] release: what was done with the blocks comes before their owner may work again.
  for (Word& word : words) __atomic_store_n(&word, empty_word, __ATOMIC_RELEASE);
}

}  // namespace terrace::percpu
