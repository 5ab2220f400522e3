// SPDX-License-Identifier: MIT OR Apache-2.0
// Critical sections behind include/terrace/cs.h, on every rung.
//
// With sequences, the open transaction IS the calling thread's rseq_cs (arch/transaction.h). Without, each slot has an owner:
// the number of the last transaction that was begun on it. A commit takes the slot's lock, looks whether the owner is still the
// same and stores. So whoever begins later on the slot interferes with all earlier transactions, exactly as a preemption does.
#pragma once

#include "arch/chain.h"
#include "arch/sequences.h"
#include "percpu/ladder.h"

namespace terrace::percpu {

/// Slots that begin() may return; decided once.
unsigned slot_count() noexcept;

/// The slot; -1 in a thread that is not registered with rseq although others work by sequences. The operations below return
/// Sequence::no_slot there.
int begin() noexcept;
/// Begins anew. Whether that is on `slot`; if not, nothing is open.
bool reopen(int slot) noexcept;
/// Not to be trusted after a system call: from Linux 6.19 on the kernel may leave the section as it is there.
bool valid() noexcept;
void invalidate() noexcept;
/// The calling thread's rseq_cs names no descriptor any more: a sequence leaves its own there when it is done, and the kernel
/// reads it whenever it next disturbs the thread. So before descriptors vanish, with the library they are in.
void forget_sections() noexcept;
/// The child has one thread, and the transaction that its parent had open is over.
void after_fork_in_child() noexcept;
arch::Sequence store32(void* address, std::uint32_t value) noexcept;
arch::Sequence store64(void* address, std::uint64_t value) noexcept;
arch::Sequence compare_exchange32(void* address, std::uint32_t expected, std::uint32_t value) noexcept;
arch::Sequence compare_exchange64(void* address, std::uint64_t expected, std::uint64_t value) noexcept;

arch::Sequence pop(arch::Words words, void*& block) noexcept;
arch::Sequence push(arch::Words words, unsigned cap, void* block) noexcept;
arch::Sequence take_all(arch::Words words, Word& chain) noexcept;
arch::Sequence put_all(arch::Words words, Word chain) noexcept;
arch::Sequence bump(arch::Words words, std::size_t bytes, std::uint64_t& start) noexcept;

}  // namespace terrace::percpu
