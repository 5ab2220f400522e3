// SPDX-License-Identifier: MIT OR Apache-2.0
#include "percpu/transaction.h"

#include "os/possible_cpus.h"
#include "percpu/locked_slots.h"

namespace terrace::percpu {
namespace {

using arch::Sequence;

/// The calling thread's open transaction on the rungs without sequences.
struct Open {
  std::uint64_t number = 0;  // 0: none
  unsigned slot = 0;
};
constinit thread_local Open open_transaction;
constinit std::atomic<std::uint64_t> last_number{0};

std::uint64_t descriptor() noexcept { return reinterpret_cast<std::uintptr_t>(&terrace_transaction); }

Sequence result_of(int code) noexcept {
  if (code == 0) return Sequence::done;
  return code == 1 ? Sequence::invalid : Sequence::mismatch;
}

int begin_locked() noexcept {
  // relaxed: only has to be unique.
  const std::uint64_t number = last_number.fetch_add(1, std::memory_order_relaxed) + 1;
  return with_some_slot(choose_locked_slot(), locked_slot_count, [=](unsigned i) {
    locked_slot(i).transaction.store(number, std::memory_order_relaxed);  // relaxed: under the lock
    open_transaction = {.number = number, .slot = i};
    return static_cast<int>(i);
  });
}

template <class Commit>
Sequence commit_locked(Commit commit) noexcept {
  const Open open = open_transaction;
  if (open.number == 0) return Sequence::invalid;
  LockedSlot& slot = locked_slot(open.slot);
  const SlotLock lock(slot);
  if (!lock.ours() || slot.transaction.load(std::memory_order_relaxed) != open.number) return Sequence::invalid;
  return commit();
}

template <class T>
Sequence store_locked(void* address, T value) noexcept {
  return commit_locked([=] {
    __atomic_store_n(static_cast<T*>(address), value, __ATOMIC_RELAXED);  // relaxed: ordered by the lock
    return Sequence::done;
  });
}

template <class T>
Sequence exchange_locked(void* address, T expected, T value) noexcept {
  return commit_locked([=] {
    if (__atomic_load_n(static_cast<T*>(address), __ATOMIC_RELAXED) != expected) return Sequence::mismatch;
    __atomic_store_n(static_cast<T*>(address), value, __ATOMIC_RELAXED);
    return Sequence::done;
  });
}

/// Runs `body` on the word of a locked slot; also interferes with transactions that are open there.
template <class Body>
Sequence on_locked_word(arch::Words words, Body body) noexcept {
  return with_some_slot(choose_locked_slot(), locked_slot_count, [=](unsigned i) {
    locked_slot(i).transaction.store(0, std::memory_order_relaxed);  // relaxed: under the lock
    return body(*reinterpret_cast<Word*>(words.base + i * words.stride));
  });
}

/// Whether the calling thread may work by sequences; registers it if that is ours to do.
bool has_slot(const Ladder& l) noexcept {
  return arch::registered(l.area) || (l.area_is_ours && os::register_rseq_for_this_thread());
}

/// One of two ways to do the same; neither in a thread that is not registered although others work by sequences.
template <class BySequence, class ByLock>
Sequence work(BySequence by_sequence, ByLock by_lock) noexcept {
  const Ladder& l = ladder();
  if (!has_sequences(l.rung)) return by_lock();
  return has_slot(l) ? by_sequence(l.area) : Sequence::no_slot;
}

}  // namespace

unsigned slot_count() noexcept { return has_sequences(ladder().rung) ? os::possible_cpus() : locked_slot_count; }

int begin() noexcept {
  const Ladder& l = ladder();
  if (!has_sequences(l.rung)) return begin_locked();
  if (!has_slot(l)) return -1;
  arch::store_critical_section(l.area.critical_section, descriptor());
  return arch::load_slot(l.area.slot);
}

bool reopen(int slot) noexcept {
  if (slot >= 0 && begin() == slot) return true;
  invalidate();
  return false;
}

bool valid() noexcept {
  const Ladder& l = ladder();
  if (has_sequences(l.rung))
    return arch::registered(l.area) && arch::load_critical_section(l.area.critical_section) == descriptor();
  return open_transaction.number != 0 && locked_slot(open_transaction.slot).transaction.load(std::memory_order_relaxed) ==
                                             open_transaction.number;  // relaxed: the commit looks again, under the lock
}

void invalidate() noexcept {
  const Ladder& l = ladder();
  if (has_sequences(l.rung)) {
    if (arch::registered(l.area)) arch::store_critical_section(l.area.critical_section, 0);
  } else {
    open_transaction.number = 0;
  }
}

void forget_sections() noexcept {
  const Ladder* const l = ladder_if_decided();
  if (l != nullptr && has_sequences(l->rung)) invalidate();
}

void after_fork_in_child() noexcept {
  if (!has_sequences(ladder().rung)) forget_holders();
  invalidate();
}

Sequence store32(void* address, std::uint32_t value) noexcept {
  return work([=](const arch::Area& a) { return result_of(terrace_commit_store32(a.critical_section, address, value)); },
              [=] { return store_locked(address, value); });
}

Sequence store64(void* address, std::uint64_t value) noexcept {
  return work([=](const arch::Area& a) { return result_of(terrace_commit_store64(a.critical_section, address, value)); },
              [=] { return store_locked(address, value); });
}

Sequence compare_exchange32(void* address, std::uint32_t expected, std::uint32_t value) noexcept {
  return work(
      [=](const arch::Area& a) { return result_of(terrace_commit_cas32(a.critical_section, address, expected, value)); },
      [=] { return exchange_locked(address, expected, value); });
}

Sequence compare_exchange64(void* address, std::uint64_t expected, std::uint64_t value) noexcept {
  return work(
      [=](const arch::Area& a) { return result_of(terrace_commit_cas64(a.critical_section, address, expected, value)); },
      [=] { return exchange_locked(address, expected, value); });
}

Sequence pop(arch::Words words, void*& block) noexcept {
  return work([&](const arch::Area& a) { return arch::pop_word(a, words, block); },
              [&] {
                return on_locked_word(words, [&](Word& word) {
                  if (!names_something(word)) return Sequence::empty;
                  if (!chain::intact(word)) return Sequence::corrupt;
                  block = chain::first(word);
                  word = chain::rest(word);
                  return Sequence::done;
                });
              });
}

Sequence push(arch::Words words, unsigned cap, void* block) noexcept {
  return work([=](const arch::Area& a) { return arch::push_word(a, words, cap, block); },
              [=] {
                return on_locked_word(words, [=](Word& word) {
                  if (chain::count(word) >= cap) return Sequence::full;
                  word = chain::pushed(word, block);
                  return Sequence::done;
                });
              });
}

Sequence take_all(arch::Words words, Word& taken) noexcept {
  return work([&](const arch::Area& a) { return arch::take_all(a, words, taken); },
              [&] {
                return on_locked_word(words, [&](Word& word) {
                  if (!names_something(word)) return Sequence::empty;
                  taken = word;
                  word = empty_word;
                  return Sequence::done;
                });
              });
}

Sequence put_all(arch::Words words, Word blocks) noexcept {
  return work([=](const arch::Area& a) { return arch::put_all(a, words, blocks); },
              [=] {
                return on_locked_word(words, [=](Word& word) {
                  if (word != empty_word) return Sequence::occupied;
                  word = blocks;
                  return Sequence::done;
                });
              });
}

Sequence bump(arch::Words words, std::size_t bytes, std::uint64_t& start) noexcept {
  return work([&](const arch::Area& a) { return arch::bump(a, words, bytes, start); },
              [&] {
                return on_locked_word(words, [&](Word& top) {
                  // As in the sequence: the limit is not read before. Who has closed the words may open them without the lock.
                  const Word old = __atomic_load_n(&top, __ATOMIC_ACQUIRE);
                  const Word limit = __atomic_load_n(&top + 1, __ATOMIC_RELAXED);
                  if (old + bytes < old || old + bytes > limit) return Sequence::full;
                  start = old;
                  __atomic_store_n(&top, old + bytes, __ATOMIC_RELAXED);
                  return Sequence::done;
                });
              });
}

}  // namespace terrace::percpu
