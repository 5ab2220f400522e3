// SPDX-License-Identifier: MIT OR Apache-2.0
//
// The machine under stop_slot.pml: words and magazines, CPUs with store buffers, and what the kernel
// does: preemption, migration of threads and of slots, aborts.

#define CPUS 2
#define SLOTS 2
#ifndef KINDS
#define KINDS 2                // words in a slot
#endif
#define WORDS (SLOTS * KINDS)
#define BLOCKS 3
#define MAGAZINES 3
#define LIMIT 2                // rounds that a magazine may hold

// A word: magazine * 8 + rounds in it. In the code it is the distance from the zeros around origin()
// to the place behind the top round.
#define EMPTY 0                // no magazine: to malloc an empty one, to free a full one;
#define STOPPED 7              // so is this
#define MAGAZINE(w) ((w) >> 3)
#define COUNT(w) ((w) & 7)
#define WORD(m, n) (((m) << 3) | (n))
#define PLACES (MAGAZINES * LIMIT)
#define PLACE(m, n) (((m) - 1) * LIMIT + (n))
#define BEHIND_TOP(w) PLACE(MAGAZINE(w), COUNT(w))
#define GARBAGE 255            // what else memory may hold; no block

#define NONE 15                // no CPU, no pending store
#define THREAD(t) (8 + (t))    // owners: word 0 .. WORDS - 1, these, and
#define REMOTE 14

// Where an owner is. From FOLLOW to LAST_PROTECTED it has read something and can be aborted.
#define IDLE 0
#define LOAD 1
#define FOLLOW 2
#define COMMIT 3
#define COMMIT_2 4
#define AFTER 5
#define DONE 6
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
  byte top;                    // the round on top,
  byte new;                    // what will be committed
  byte block;                  // in the program's hands
  byte own                     // private magazine, as a word
};
Thread thread[THREADS];

// Slot 0 starts with all blocks: WORD(1, 2) and WORD(2, 1); slot 1 with WORD(3, 0). Spin wants plain numbers here.
byte word[WORDS] = { 10, 17, 24, 0 };
byte round[PLACES] = { 1, 2, 3, 255, 255, 255 };
byte owner[BLOCKS + 1] = { 15, 0, 0, 1 };           // ghost, as the next
byte magazine_owner[MAGAZINES + 1] = { 15, 0, 1, 2 };
// Store buffers: of one word and of one round per CPU. They drain in any order, as stores of aarch64 may.
byte pending_at[CPUS] = NONE;                       // index of a word,
byte pending[CPUS];                                 // and its new value
byte round_at[CPUS] = NONE;                         // index of a place,
byte round_to_be[CPUS];                             // and its new round
bool firm[WORDS];                                   // ghost: seen stopped after the barrier

byte x_, n_, b_, m_, seen_;    // scratch of the atomic steps, 0 between them

// A CPU's loads find its own stores first. Memory itself is what CPU `NONE` sees.
#define LOADED(c, i) (pending_at[c] == (i) -> pending[c] : word[i])
#define ROUND(c, i) (((c) != NONE && round_at[c] == (i)) -> round_to_be[c] : round[i])

// P1 for one word: `value` names a magazine of `who`'s, which has exactly the blocks that `who` owns, each once. `viewer` looks.
inline check(value, who, viewer) {
  m_ = MAGAZINE(value); n_ = COUNT(value); seen_ = 0;
  assert(m_ <= MAGAZINES && n_ <= LIMIT && (m_ != 0 || n_ == 0));
  b_ = 1;
  do
  :: b_ <= MAGAZINES -> assert((magazine_owner[b_] == who) == (b_ == m_)); b_++
  :: else -> break
  od;
  do
  :: n_ > 0 ->
    n_--;
    b_ = ROUND(viewer, PLACE(m_, n_));
    assert(b_ >= 1 && b_ <= BLOCKS);
    assert(owner[b_] == who && !(seen_ & (1 << b_)));
    seen_ = seen_ | (1 << b_)
  :: else -> break
  od;
  b_ = 1;
  do
  :: b_ <= BLOCKS -> assert(owner[b_] != who || (seen_ & (1 << b_))); b_++
  :: else -> break
  od;
  b_ = 0; m_ = 0; seen_ = 0
}

// The magazine that `value` names changes hands, with its blocks.
inline hand_over(value, to, viewer) {
  n_ = COUNT(value);
  do
  :: n_ > 0 -> n_--; owner[ROUND(viewer, PLACE(MAGAZINE(value), n_))] = to
  :: else -> break
  od;
  magazine_owner[MAGAZINE(value)] = to
}

inline drain_word(c) {
  if
  :: pending_at[c] != NONE ->
    assert(!firm[pending_at[c]]);  // P2
    word[pending_at[c]] = pending[c];
    pending_at[c] = NONE;
    pending[c] = 0
  :: else
  fi
}

inline drain_round(c) {
  if
  :: round_at[c] != NONE ->
    assert(magazine_owner[round_at[c] / LIMIT + 1] != REMOTE);  // P2
    round[round_at[c]] = round_to_be[c];
    round_at[c] = NONE;
    round_to_be[c] = 0
  :: else
  fi
}

inline drain(c) {
  drain_word(c);
  drain_round(c)
}

// What a push wrote above the top before it was aborted, nobody must believe: it is garbage at once here.
inline forget_round(t) {
  if
  :: thread[t].at == COMMIT && thread[t].op == PUSH ->
    if
    :: thread[t].cpu != NONE && round_at[thread[t].cpu] == BEHIND_TOP(thread[t].w) -> round_to_be[thread[t].cpu] = GARBAGE
    :: else -> round[BEHIND_TOP(thread[t].w)] = GARBAGE
    fi
  :: else
  fi
}

// An abort has no effect but this: the registers are void and the sequence begins again.
inline abort(t) {
  if
  :: thread[t].at >= FOLLOW && thread[t].at <= LAST_PROTECTED ->
    forget_round(t);
    thread[t].at = LOAD; thread[t].w = 0; thread[t].top = 0; thread[t].new = 0;
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
