/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Critical sections on per-processor data without atomic instructions and without locks: the MP-RCS interface of
 *   A. Garthwaite, D. Dice, D. White: Supporting Per-Processor Local-Allocation Buffers Using Lightweight User-Level Preemption
 *   Notification, VEE 2005, section 3,
 * on Linux' restartable sequences.
 *
 * A transaction begins with terrace_cs_begin(), which tells on which slot the thread runs. Then it computes, in plain C, what
 * it wants to store into data of that slot, and stores it with a conditional store, which fails if the thread was preempted,
 * migrated or interrupted by a signal since the beginning: nobody else has been on the slot in between.
 *
 *     do {
 *       slot = terrace_cs_begin();
 *       n = counter[slot].value + 1;
 *     } while (terrace_cs_store64(&counter[slot].value, n) != 0);
 *     terrace_cs_end();
 *
 * Stores chain: after a successful one the transaction is still open. A nested begin, in a signal handler or in a function that
 * is called, a typed sequence below, and any use of malloc read as interference. Only stores by these functions are
 * conditional; a plain store in a transaction happens whatever follows.
 *
 * Between begin and the last store there may stand any computation, loads, page faults and signals, but NO SYSTEM CALL, made by
 * the code itself or by a function it calls (input and output, a contended mutex, a call that maps memory). Kernels before 6.19
 * end a transaction in a system call that lets others run; later ones may leave it as it is, and terrace_cs_valid() says 1 and
 * stores succeed although other threads have been on the slot, or the thread is on another one. Where a call can not be
 * avoided, terrace_cs_reopen() after it and a comparison of all that was read before are right on every kernel:
 *
 *     slot = terrace_cs_begin();  old = data[slot].word;  x = something_that_may_block();
 *     if (terrace_cs_reopen(slot) != 0 || data[slot].word != old) begin anew; x is still the caller's
 *     if (terrace_cs_store64(&data[slot].word, f(x)) != 0) the same
 *
 * (A value that may have changed and come back must carry a count, as with any comparison.)
 *
 * The kernel reads the descriptor of a thread's last section when it next disturbs the thread, however long after. The
 * descriptors of this library lie in libterrace, which is never unloaded (-z nodelete). A program that links the archive into a
 * library and unloads that, or frees memory with descriptors of its own, first has each thread that used them call
 * terrace_cs_end(): a descriptor that has vanished ends the process with SIGSEGV.
 *
 * A transaction that is begun inside another one takes its place. Code that may run in the middle of another transaction (a
 * signal handler, a callback) must therefore close its own, by terrace_cs_end() or terrace_cs_invalidate(), before it returns.
 * Then the outer transaction reads as invalid.
 *
 * There is nothing to initialise. Without restartable sequences (old kernels, sandboxes, valgrind) the same functions work by a
 * short lock per slot; terrace_rung() in stats.h tells. Data is indexed by slot, 0 <= slot < terrace_cs_slots(); give each
 * slot's data cache lines of its own.
 *
 * A thread has no slot when it is not registered with rseq while other threads of the process work by it: its program has
 * unregistered it, or has registered an area of its own before libterrace could. Then terrace_cs_begin() returns -1 and
 * everything else TERRACE_CS_NO_SLOT (terrace_cs_valid(): 0); that lasts until the program changes it. Every thread that libc
 * has started has a slot unless the program changed its registration.
 *
 * Common to all functions: Threads: safe. Signals: safe; what a handler does invalidates the interrupted transaction. fork: the
 * child's transactions are invalid; usable in the child. vfork: not usable in the child. errno: not touched. Since 0.1.
 */
#ifndef TERRACE_CS_H
#define TERRACE_CS_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Results of conditional and typed operations. After any other than TERRACE_CS_OK nothing was stored. */
enum {
  TERRACE_CS_OK = 0,
  TERRACE_CS_INVALID = 1,  /* the transaction is over: begin again */
  TERRACE_CS_MISMATCH = 2, /* compare-and-swap: another value was there; the transaction is still open */
  TERRACE_CS_EMPTY = 3,    /* pop, take_all */
  TERRACE_CS_FULL = 4,     /* push, bump */
  TERRACE_CS_OCCUPIED = 5, /* put_all */
  TERRACE_CS_CORRUPT = 6,  /* pop: the first block was written after it was pushed */
  TERRACE_CS_NO_SLOT = 7   /* the thread has no slot: see above. Trying again does not help */
};

/**
 * terrace_cs_slots - the number of slots: every slot that terrace_cs_begin() ever returns is smaller.
 * Constant for the life of the process. Cost: none after the first call.
 */
unsigned terrace_cs_slots(void);

/**
 * terrace_cs_begin - opens a transaction; one that was open is over.
 * Returns the slot the thread runs on, >= 0; the answer is good for as long as the transaction is valid.
 * Returns -1 when the thread has no slot: see above.
 * Cost: one store and two loads.                                                                      paper: csBegin
 */
int terrace_cs_begin(void);

/**
 * terrace_cs_reopen - opens a transaction on the slot that an earlier one was on: after a system call, or when the earlier one
 * turned out to be invalid. What was read before counts only if it is read again and is the same.
 * @slot: as terrace_cs_begin() returned it.
 * Returns TERRACE_CS_OK, or TERRACE_CS_INVALID: the thread is on another slot now, and no transaction is open.
 * Cost: as terrace_cs_begin().
 */
int terrace_cs_reopen(int slot);

/**
 * terrace_cs_valid - 1 while nothing has interfered with the open transaction, else 0. Not to be relied on after a system call,
 * see above. Cost: two loads.                                                                            paper: csValid
 */
int terrace_cs_valid(void);

/**
 * terrace_cs_end - closes the transaction normally. Not needed before the next begin. On the rungs with sequences it also makes
 * the thread's rseq_cs name no descriptor, whoever's it was.                                             paper: csEnd
 */
void terrace_cs_end(void);

/** terrace_cs_invalidate - closes the transaction; later stores of it fail.                               paper: csInvalidate
 */
void terrace_cs_invalidate(void);

/**
 * terrace_cs_store32, terrace_cs_store64 - *@address = @value if the transaction is valid.
 * @address: naturally aligned, data of the slot that begin returned.
 * Returns TERRACE_CS_OK, TERRACE_CS_INVALID or TERRACE_CS_NO_SLOT. Cost: about that of a plain store and a load. paper:
 * csST32C, csST64C
 */
int terrace_cs_store32(void* address, int32_t value);
int terrace_cs_store64(void* address, int64_t value);

/**
 * terrace_cs_cas32, terrace_cs_cas64 - *@address = @value if the transaction is valid and *@address == @expected.
 * Atomic against threads on the same slot; not an atomic instruction: other slots must not write the word.
 * Returns TERRACE_CS_OK, TERRACE_CS_INVALID, TERRACE_CS_MISMATCH or TERRACE_CS_NO_SLOT.                    paper: csCAS32C,
 * csCAS64C
 */
int terrace_cs_cas32(int32_t value, int32_t expected, void* address);
int terrace_cs_cas64(int64_t value, int64_t expected, void* address);

/*
 * Typed sequences: one restartable sequence each, on one word per slot at words + slot * stride. They choose the slot
 * themselves, restart by themselves and need no transaction. A word is a chain of blocks: address of the first << 8 | number of
 * blocks, 0 if empty; the first 8 bytes of each block hold the word as it was before the block was pushed, the rest is
 * not touched. Blocks are at least 8 bytes, aligned to 8, below 2^56. The words start as 0. In a thread without a slot all of
 * them return TERRACE_CS_NO_SLOT.
 */
struct terrace_cs_words {
  void* words;   /* word of slot 0, aligned to 8 */
  size_t stride; /* bytes from one slot's word to the next, a multiple of 8; 64 or more keeps slots out of each other's cache
                    lines */
};

/** terrace_cs_pop - takes the first block off the slot's chain into *@block. TERRACE_CS_OK, _EMPTY or _CORRUPT. */
int terrace_cs_pop(struct terrace_cs_words where, void** block);

/** terrace_cs_push - puts @block in front of the slot's chain unless that holds @cap (at most 254) blocks. _OK or _FULL. */
int terrace_cs_push(struct terrace_cs_words where, unsigned cap, void* block);

/** terrace_cs_take_all - *@chain = the slot's chain, which is empty then. _OK or _EMPTY. */
int terrace_cs_take_all(struct terrace_cs_words where, uint64_t* chain);

/** terrace_cs_put_all - makes @chain the slot's chain if that is empty. _OK or _OCCUPIED: the chain stays the caller's. */
int terrace_cs_put_all(struct terrace_cs_words where, uint64_t chain);

/**
 * terrace_cs_bump - *@start = top, top += @bytes, if top + @bytes <= limit. The slot has two words: top, then limit.
 * _OK or _FULL.
 */
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
