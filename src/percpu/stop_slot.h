// SPDX-License-Identifier: MIT OR Apache-2.0
// Taking a slot's words away from whoever runs on it. The protocol has a model in models/.
//
//   1  every word is compared-and-swapped to stopped_word; what it held is kept
//   2  one membarrier: every sequence that had read a word before step 1 has committed or is aborted, and its store is visible
//   3  a word that is not `stopped` now was overwritten by such a commit: what was kept for it is void, back to step 1
//
// The rounds of a magazine are read after step 2 only: the barrier makes them visible, too, which push_round stores before its
// commit. From then on no owner writes these words: to pop and take_all a stopped word looks empty, to push full, to put_all
// occupied.
#pragma once

#include "arch/word.h"

#include <cstddef>
#include <span>

namespace terrace::percpu {

/// Stops `words`; held[i] becomes what words[i] held (a magazine, a chain or nothing), now the caller's. False: the barrier
/// failed; nothing is stopped and held is void. One thread at a time per word: the caller has a lock for that.
bool stop_words(std::span<Word> words, Word* held) noexcept;
/// Gives the words back, empty.
void start_words(std::span<Word> words) noexcept;

}  // namespace terrace::percpu
