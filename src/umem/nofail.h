// SPDX-License-Identifier: MIT OR Apache-2.0
// UMEM_NOFAIL without memory: the program's function decides whether to try again or to exit.
#pragma once

#include "umem.h"

namespace terrace::umem {

void set_nofail_callback(umem_nofail_callback_t* callback) noexcept;

/// Calls the program's function. Returns for another try; the function may also leave by longjmp or exit. Requires that the
/// caller holds no lock.
void ask_what_to_do();

/// attempt() until it succeeds, if `flags` say so.
template <class Attempt>
void* until_it_succeeds(int flags, Attempt attempt) {
  for (;;) {
    void* const p = attempt();
    if (p != nullptr || (flags & UMEM_NOFAIL) == 0) [[likely]]
      return p;
    ask_what_to_do();
  }
}

}  // namespace terrace::umem
