// SPDX-License-Identifier: MIT OR Apache-2.0
#include "level/depot.h"

namespace terrace::level {

ChainWord ChainStack::pop_oldest() noexcept {
  const os::LockGuard guard(mutex_);
  if (count_ == 0) return chain::empty;
  return remove(0);
}

// The others stay in order of age. The mutex is held.
ChainWord ChainStack::remove(unsigned at) noexcept {
  const ChainWord taken = chains_[at];
  for (unsigned i = at + 1; i < count_; ++i) {
    chains_[i - 1] = chains_[i];
    origins_[i - 1] = origins_[i];
  }
  __atomic_store_n(&count_, count_ - 1, __ATOMIC_RELAXED);
  return taken;
}

std::size_t ChainStack::blocks() noexcept {
  if (size() == 0) return 0;
  const os::LockGuard guard(mutex_);
  std::size_t sum = 0;
  for (unsigned i = 0; i < count_; ++i) sum += chain::count(chains_[i]);
  return sum;
}

ChainWord Depots::take(unsigned own, std::size_t key, Origin from, bool& foreign) noexcept {
  foreign = false;
  for (unsigned i = 0, p = own; i < processors_; ++i) {
    const ChainWord taken = stack(p, key).pop(from);
    if (taken != chain::empty) {
      foreign = i != 0;
      return taken;
    }
    p = p + 1 == processors_ ? 0 : p + 1;
  }
  return chain::empty;
}

}  // namespace terrace::level
