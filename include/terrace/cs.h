/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Critical sections on data per slot (a core), without atomic instructions and locks: the MP-RCS interface of
 *   A. Garthwaite, D. Dice, D. White: Supporting Per-Processor Local-Allocation Buffers Using Lightweight User-Level Preemption
 *   Notification, VEE 2005, section 3,
 * on Linux' restartable sequences. docs/guide/critical-sections.md has examples, costs and the rules at length.
 *
 * A transaction begins with terrace_cs_begin(), which returns the slot. The program reads data of that slot, computes in plain
 * C, and stores the result with a conditional store. The store fails if the thread was preempted, migrated or interrupted by a
 * signal since the beginning.
 *
 *     do {
 *       slot = terrace_cs_begin();
 *       n = counter[slot].value + 1;
 *     } while (terrace_cs_store64(&counter[slot].value, n) != 0);
 *     terrace_cs_end();
 *
 * After a successful store the transaction is still open. It ends when the thread begins another one, runs a typed sequence
 * (below) or uses malloc, in a signal handler or a called function too. Such code must close its own transaction before it
 * returns; the outer one is then invalid. Only the stores below are conditional; a plain store always happens.
 *
 * NO SYSTEM CALL may lie between begin and the last store, not even in a called function: since Linux 6.19 a transaction may
 * survive one during which other threads ran on the slot. After an unavoidable call use terrace_cs_reopen(), and go on only if
 * everything that was read before is the same; a value that may change and change back needs a count.
 *
 * Unloading: the kernel reads the descriptor of a thread's last section later and ends the process by SIGSEGV if its memory is
 * gone. Before a library that contains the archive is unloaded, or descriptors of the program's own are freed, each thread that
 * used them calls terrace_cs_end(). libterrace is never unloaded.
 *
 * Nothing needs initialisation. Without restartable sequences the functions take a short lock per slot; terrace_rung() in
 * stats.h tells. Give each slot's data cache lines of its own.
 *
 * A thread without a slot gets -1 from terrace_cs_begin(), 0 from terrace_cs_valid(), and TERRACE_CS_NO_SLOT from the others,
 * until the program changes its rseq registration: the program unregistered the thread, or registered an area
 * before libterrace could.
 *
 * All functions: Threads: safe. Signals: safe; the interrupted transaction becomes invalid. fork: usable in the child, where
 * transactions are invalid. vfork: not usable in the child. errno: not touched. Since 0.1. In brackets: the paper's names,
 * which TERRACE_CS_PAPER_NAMES defines.
 */
#ifndef TERRACE_CS_H
#define TERRACE_CS_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Results. Any other than TERRACE_CS_OK has stored nothing. */
enum {
  TERRACE_CS_OK = 0,
  TERRACE_CS_INVALID = 1,  /* the transaction is over */
  TERRACE_CS_MISMATCH = 2, /* compare-and-swap found another value; the transaction is open */
  TERRACE_CS_EMPTY = 3,    /* pop, take_all */
  TERRACE_CS_FULL = 4,     /* push, bump */
  TERRACE_CS_OCCUPIED = 5, /* put_all */
  TERRACE_CS_CORRUPT = 6,  /* pop: the first block was written after it was pushed */
  TERRACE_CS_NO_SLOT = 7   /* see above; another try does not help */
};

/** The number of slots: 0 <= slot < terrace_cs_slots(). Constant for the process. Cost: none after the first call. */
unsigned terrace_cs_slots(void);

/** Opens a transaction and returns the slot, or -1: no slot. Cost: one store, two loads. [csBegin] */
int terrace_cs_begin(void);

/**
 * Opens a transaction on the slot of an earlier one, after a system call or an invalid transaction. Read everything again.
 * @slot: from terrace_cs_begin().
 * Returns TERRACE_CS_OK; or TERRACE_CS_INVALID: the thread is on another slot, and no transaction is open.
 * Cost: as terrace_cs_begin().
 */
int terrace_cs_reopen(int slot);

/** 1 while the open transaction is valid, else 0. Unreliable after a system call. Cost: two loads. [csValid] */
int terrace_cs_valid(void);

/**
 * Closes the transaction; optional before the next begin. With restartable sequences it also clears the thread's rseq_cs.
 * [csEnd]
 */
void terrace_cs_end(void);

/** Closes the transaction; its later stores fail. [csInvalidate] */
void terrace_cs_invalidate(void);

/**
 * Stores @value at @address if the transaction is valid. [csST32C, csST64C]
 * @address: naturally aligned, data of the transaction's slot.
 * Returns TERRACE_CS_OK, TERRACE_CS_INVALID or TERRACE_CS_NO_SLOT. Cost: about a load and a plain store.
 */
int terrace_cs_store32(void* address, int32_t value);
int terrace_cs_store64(void* address, int64_t value);

/**
 * Stores @value at @address if the transaction is valid and @expected was there. Atomic only against threads on the same slot.
 * [csCAS32C, csCAS64C] Returns as the stores, or TERRACE_CS_MISMATCH.
 */
int terrace_cs_cas32(int32_t value, int32_t expected, void* address);
int terrace_cs_cas64(int64_t value, int64_t expected, void* address);

/*
 * Typed sequences: one restartable sequence each, without a transaction. They choose the slot, restart by themselves, and
 * return TERRACE_CS_OK, TERRACE_CS_NO_SLOT or the named result. A word is a chain of blocks: address of the first << 8 | number
 * of blocks; 0: empty. The first 8 bytes of a block hold the word from before its push. Blocks have at least 8 bytes, aligned
 * to 8, below 2^56. Words start as 0.
 */
struct terrace_cs_words {
  void* words;   /* word of slot 0, aligned to 8 */
  size_t stride; /* bytes to the next slot's word, a multiple of 8; 64 or more separates cache lines */
};

/** Takes the first block off the slot's chain into *@block. TERRACE_CS_EMPTY, TERRACE_CS_CORRUPT. */
int terrace_cs_pop(struct terrace_cs_words where, void** block);

/** Puts @block in front of the slot's chain. TERRACE_CS_FULL: the chain has @cap (at most 254) blocks. */
int terrace_cs_push(struct terrace_cs_words where, unsigned cap, void* block);

/** Moves the slot's chain to *@chain. TERRACE_CS_EMPTY. */
int terrace_cs_take_all(struct terrace_cs_words where, uint64_t* chain);

/** Moves @chain to the slot. TERRACE_CS_OCCUPIED: the slot's chain is not empty; @chain stays the caller's. */
int terrace_cs_put_all(struct terrace_cs_words where, uint64_t chain);

/** Sets *@start to top and adds @bytes to top. The slot has two words: top, limit. TERRACE_CS_FULL: top + @bytes > limit. */
int terrace_cs_bump(struct terrace_cs_words where, size_t bytes, uint64_t* start);

#if defined(TERRACE_CS_PAPER_NAMES)
static inline int csBegin(void) { return terrace_cs_begin(); }
static inline int csValid(void) { return terrace_cs_valid(); }
static inline void csEnd(void) { terrace_cs_end(); }
static inline void csInvalidate(void) { terrace_cs_invalidate(); }
static inline int csST32C(void* address, int32_t value) { return terrace_cs_store32(address, value); }
static inline int csST64C(void* address, int64_t value) { return terrace_cs_store64(address, value); }
static inline int csCAS32C(int32_t value, int32_t old, void* address) { return terrace_cs_cas32(value, old, address); }
static inline int csCAS64C(int64_t value, int64_t old, void* address) { return terrace_cs_cas64(value, old, address); }
#endif

#ifdef __cplusplus
}
#endif
#endif
