// SPDX-License-Identifier: MIT OR Apache-2.0
//
// The machine under stop_slot.pml: words and chains, CPUs with store buffers, and what the kernel
// does: preemption, migration of threads and of slots, aborts.

#define CPUS 2
#define SLOTS 2
#ifndef KINDS
#define KINDS 2                // words in a slot: one to allocate from, one to free into
#endif
#define WORDS (SLOTS * KINDS)
#define BLOCKS 3

// A word: first block * 8 + count; in the code address << 8 | count.
#define EMPTY 0
#define STOPPED 7              // no block, the largest count
#define FIRST(w) ((w) >> 3)
#define COUNT(w) ((w) & 7)
#define CHAIN(b, n) (((b) << 3) | (n))
#define CAP 6
#define GARBAGE 255            // what a program writes into its block; fits no chain

#define NONE 15                // no CPU, no pending store
#define THREAD(t) (8 + (t))    // owners of blocks: word 0 .. WORDS - 1, these, and
#define REMOTE 14

// Where an owner is. From FOLLOW to LAST_PROTECTED it has read something and can be aborted.
#define IDLE 0
#define LOAD 1
#define FOLLOW 2
#define COMMIT 3
#define COMMIT_2 4
#define DONE 5
#if defined(WRONG_LENGTH) || defined(SLOT_REREAD)
#define LAST_PROTECTED FOLLOW  // the range that the kernel knows ends before the commit
#else
#define LAST_PROTECTED COMMIT_2
#endif

#define POP 0
#define PUSH 1
#define TAKE_ALL 2
#define PUT_ALL 3

typedef Thread {
  byte cpu = NONE;
  byte slot;                   // the kernel's: mm_cid or cpu_id; valid while it has a CPU
  byte at;
  byte left = OPS;
  byte op;
  byte kind;
  byte i;                      // registers: index of the word,
  byte w;                      // what it held,
  byte new;                    // what will be committed
  byte block;                  // in the program's hands
  byte chain                   // private chain, as a word
};
Thread thread[THREADS];

// Slot 0 starts with all blocks: CHAIN(1, 2) and CHAIN(3, 1). Spin wants plain numbers here.
byte word[WORDS] = { 10, 25, 0, 0 };
byte next[BLOCKS + 1] = { 0, 17, 0, 0 };     // first word of a block: the chain without it
byte owner[BLOCKS + 1] = { 15, 0, 0, 1 };    // ghost
byte pending_at[CPUS] = NONE;                // store buffers: index of a word,
byte pending[CPUS];                          // and its new value
bool firm[WORDS];                            // ghost: seen stopped after the barrier

byte x_, n_, b_, seen_;        // scratch of the atomic steps, 0 between them

// P1 for one word: `value` names exactly the blocks that `who` owns, each once.
inline check_chain(value, who) {
  b_ = FIRST(value); n_ = COUNT(value); seen_ = 0;
  do
  :: n_ > 0 ->
    assert(b_ >= 1 && b_ <= BLOCKS);
    assert(owner[b_] == who && !(seen_ & (1 << b_)));
    seen_ = seen_ | (1 << b_);
    assert(COUNT(next[b_]) + 1 == n_);
    n_--;
    b_ = FIRST(next[b_])
  :: else -> break
  od;
  assert(b_ == 0);
  b_ = 1;
  do
  :: b_ <= BLOCKS -> assert(owner[b_] != who || (seen_ & (1 << b_))); b_++
  :: else -> break
  od;
  b_ = 0; n_ = 0; seen_ = 0
}

// The blocks of the chain `value` change hands.
inline hand_over(value, to) {
  x_ = FIRST(value);
  do
  :: x_ != 0 -> owner[x_] = to; x_ = FIRST(next[x_])
  :: else -> break
  od
}

// The store buffer of a CPU has one entry. A load finds it there first.
#define LOADED(c, i) (pending_at[c] == (i) -> pending[c] : word[i])

inline drain(c) {
  if
  :: pending_at[c] != NONE ->
    assert(!firm[pending_at[c]]);  // P2
    word[pending_at[c]] = pending[c];
    pending_at[c] = NONE;
    pending[c] = 0
  :: else
  fi
}

// An abort has no effect but this: the registers are void and the sequence begins again.
inline abort(t) {
  if
  :: thread[t].at >= FOLLOW && thread[t].at <= LAST_PROTECTED ->
    thread[t].at = LOAD; thread[t].w = 0; thread[t].new = 0;
#ifndef SLOT_KEPT
    thread[t].i = 0
#endif
  :: else
  fi
}

#define HAS_CPU(t, c) (thread[t].cpu == (c))
#define HAS_SLOT(t, s) (thread[t].cpu != NONE && thread[t].slot == (s))
#define FINISHED(t) (thread[t].at == DONE)
#if THREADS == 2
#define IS_IDLE(c) (!HAS_CPU(0, c) && !HAS_CPU(1, c))
#define IS_FREE(s) (!HAS_SLOT(0, s) && !HAS_SLOT(1, s))
#define OWNERS_DONE (FINISHED(0) && FINISHED(1))
#else
#define IS_IDLE(c) (!HAS_CPU(0, c) && !HAS_CPU(1, c) && !HAS_CPU(2, c))
#define IS_FREE(s) (!HAS_SLOT(0, s) && !HAS_SLOT(1, s) && !HAS_SLOT(2, s))
#define OWNERS_DONE (FINISHED(0) && FINISHED(1) && FINISHED(2))
#endif
#ifdef SHARED_SLOT
#undef IS_FREE
#define IS_FREE(s) true
#endif

// cpu_id: the slot is the CPU. mm_cid: any slot that no running thread has.
#ifdef SLOT_IS_CPU
#define MAY_RUN(c, s) (IS_IDLE(c) && (c) == (s))
#else
#define MAY_RUN(c, s) (IS_IDLE(c) && IS_FREE(s))
#endif

// A context switch is a full memory barrier on its CPU, and aborts the thread that leaves.
inline leave_cpu(t) {
#ifndef NO_SWITCH_BARRIER
  x_ = thread[t].cpu;
  drain(x_);
  x_ = 0;
#endif
  thread[t].cpu = NONE;
  thread[t].slot = 0
}
