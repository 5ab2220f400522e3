// SPDX-License-Identifier: MIT OR Apache-2.0
// What UMEM_NOFAIL means when there is no memory: the program's function decides whether to try again or to end.
#pragma once

#include "umem.h"

namespace terrace::umem {

void set_nofail_callback(umem_nofail_callback_t* callback) noexcept;

/// Asks the program's function. Returns when there is to be another try; may also leave by what the function does. Requires
/// that the caller holds no lock.
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
