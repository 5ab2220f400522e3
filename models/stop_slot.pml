// SPDX-License-Identifier: MIT OR Apache-2.0
//
// stop_slot: taking the words of a slot away from the threads that work on it by restartable
// sequences. Code: stop_words() and start_words() in src/percpu/stop_slot.cpp, the sequences in
// src/arch/. What stands for what: README.md beside this file.
//
//   owner    a thread: pop, push, take_all, put_all on the words of the slot it runs on. It moves
//            only while it has a CPU. At any step it may lose the CPU, and get another CPU or
//            another slot later. An abort takes it back to LOAD.
//   memory   lets the one-entry store buffer of a CPU drain, at any time.
//   remote   stops the words of slot 0, takes what they held, starts them again; ROUNDS times.
//
// Checked
//   P1  Each block has one owner: a word, a thread, the remote. The chain in a word has exactly
//       the blocks that the word owns.
//   P2  From the moment the remote, after the barrier, sees a word stopped until it starts it, no
//       commit is done on it and none lands on it.
//   P3  A pop never finds that somebody wrote into the block that it is about to take.
//   P4  Everything ends (no invalid end state), and every block is accounted for then.
//   P5  A stop returns, whatever the owners do (-DLIVENESS; weak fairness, no failing barrier).
//
// Each #ifdef below and in machine.pml that is not a size is a mutant: check.py has the list.

#ifndef THREADS
#define THREADS 2
#endif
#ifndef OPS
#define OPS 2                  // sequences that each thread completes
#endif
#ifndef ROUNDS
#define ROUNDS 1
#endif

#include "machine.pml"

bool remote_done;

#define me thread[_pid]
#define RUNS (me.cpu != NONE)
#define SWITCH_IN(c, s) d_step { !RUNS && MAY_RUN(c, s) -> me.cpu = c; me.slot = s }
#define MY_WORD (me.slot * KINDS + me.kind)
#define LEAVE me.at = IDLE; me.op = 0; me.kind = 0; me.i = 0; me.w = 0; me.new = 0

inline begin() {
#ifndef ENDLESS_OWNERS
  me.left--;
#endif
  if
  :: me.block == 0 -> me.op = POP
  :: me.block != 0 -> me.op = PUSH
  :: me.chain == EMPTY -> me.op = TAKE_ALL
  :: me.chain != EMPTY -> me.op = PUT_ALL
  fi;
  if
  :: me.kind = 0
#if KINDS == 2
  :: me.kind = 1
#endif
  fi;
#ifdef SLOT_KEPT
  me.i = MY_WORD;
#endif
  me.at = LOAD
}

inline load() {
#ifndef SLOT_KEPT
  me.i = MY_WORD;
#endif
  x_ = LOADED(me.cpu, me.i);
#ifdef NO_STOPPED_CHECK
  if :: x_ == STOPPED -> x_ = EMPTY :: else fi;
#endif
  if
  :: me.op == POP && FIRST(x_) != 0 -> me.w = x_; me.at = FOLLOW
  :: me.op == PUSH && COUNT(x_) < CAP ->
    next[me.block] = x_;  // the block is still ours, so this is no commit
    me.new = CHAIN(me.block, COUNT(x_) + 1);
    me.at = COMMIT
  :: me.op == TAKE_ALL && FIRST(x_) != 0 -> me.w = x_; me.at = COMMIT
  :: me.op == PUT_ALL && x_ == EMPTY -> me.new = me.chain; me.at = COMMIT
  :: else -> LEAVE        // empty, full, occupied: the next level
  fi;
  x_ = 0
}

inline follow() {
  me.new = next[FIRST(me.w)];
  assert(COUNT(me.new) + 1 == COUNT(me.w));  // P3
  me.at = COMMIT
}

inline store(value) {
  pending_at[me.cpu] = me.i;
  pending[me.cpu] = value
}

// The first of two stores changes half of the word.
inline store_half() {
  x_ = LOADED(me.cpu, me.i);
  x_ = (x_ & 7) | (me.new & ~7);
  store(x_);
  x_ = 0;
  me.at = COMMIT_2
}

inline commit() {
#ifdef SLOT_REREAD
  me.i = MY_WORD;
#endif
  assert(!firm[me.i]);  // P2
  store(me.new);
  if
  :: me.op == POP ->
    me.block = FIRST(me.w);
    assert(owner[me.block] == me.i);
    owner[me.block] = THREAD(_pid);
    next[me.block] = GARBAGE
  :: me.op == PUSH -> owner[me.block] = me.i; me.block = 0
  :: me.op == TAKE_ALL ->
    check_chain(me.w, me.i);
    me.chain = me.w;
    hand_over(me.chain, THREAD(_pid))
  :: me.op == PUT_ALL -> hand_over(me.chain, me.i); me.chain = EMPTY
  fi;
  check_chain(me.new, me.i);  // P1
  LEAVE
}

active [THREADS] proctype owner_thread() {
  do
  :: SWITCH_IN(0, 0)
  :: SWITCH_IN(1, 1)
#ifndef SLOT_IS_CPU
  :: SWITCH_IN(0, 1)
  :: SWITCH_IN(1, 0)
#endif
  :: d_step { RUNS ->
       leave_cpu(_pid);
#ifndef LOST_ABORT
       abort(_pid)
#endif
     }
  :: atomic { RUNS && me.at == IDLE && me.left > 0 -> begin() }
  :: d_step { RUNS && me.at == LOAD -> load() }
  :: d_step { RUNS && me.at == FOLLOW -> follow() }
#ifdef TWO_STORES
  :: d_step { RUNS && me.at == COMMIT && pending_at[me.cpu] == NONE -> store_half() }
  :: d_step { RUNS && me.at == COMMIT_2 && pending_at[me.cpu] == NONE -> commit() }
#else
  :: d_step { RUNS && me.at == COMMIT && pending_at[me.cpu] == NONE -> commit() }
#endif
  :: atomic { RUNS && me.at == IDLE && me.left == 0 -> leave_cpu(_pid); me.at = DONE; break }
  od
}

active proctype memory() {
  do
  :: d_step { pending_at[0] != NONE -> drain(0) }
  :: d_step { pending_at[1] != NONE -> drain(1) }
  :: atomic { OWNERS_DONE && remote_done && pending_at[0] == NONE && pending_at[1] == NONE ->
       d_step {  // P4
         x_ = 0;
         do
         :: x_ < WORDS -> check_chain(word[x_], x_); x_++
         :: else -> break
         od;
         x_ = 0
       };
       break }
  od
}

inline interrupt(c) {
#ifndef PLAIN_BARRIER
  x_ = 0;
  do
  :: x_ < THREADS -> if :: HAS_CPU(x_, c) -> abort(x_) :: else fi; x_++
  :: else -> break
  od;
  x_ = 0;
#endif
#ifndef NO_DRAIN
  drain(c);
#endif
  mask = mask & ~(1 << c)
}

// membarrier(PRIVATE_EXPEDITED_RSEQ): look, CPU by CPU, which of them run us; interrupt those, in
// any order. The others have been through a context switch.
inline barrier() {
  d_step { if :: !IS_IDLE(0) -> mask = 1 :: else -> mask = 0 fi };
  d_step { if :: !IS_IDLE(1) -> mask = mask | 2 :: else fi };
  do
  :: d_step { mask & 1 -> interrupt(0) }
  :: d_step { mask & 2 -> interrupt(1) }
  :: mask == 0 -> break
  od
}

// Compare-and-swap until it succeeds. A word that is still stopped from the last attempt stays.
inline stop_word() {
  expected = word[k];
  do
  :: atomic { expected == STOPPED -> expected = 0; break }
#ifdef STOP_BY_STORE
  :: atomic { expected != STOPPED ->
       held[k] = expected; word[k] = STOPPED; expected = 0; break }
#else
  :: atomic { expected != STOPPED && word[k] == expected ->
#ifdef KEEP_FIRST_HELD
       if :: !again -> held[k] = expected :: else fi;
#else
       held[k] = expected;
#endif
       word[k] = STOPPED; expected = 0; break }
  :: atomic { expected != STOPPED && word[k] != expected -> expected = word[k] }
#endif
  od
}

// After a barrier that failed.
inline undo_word() {
#ifdef UNDO_BY_STORE
  word[k] = held[k];
#else
  if :: word[k] == STOPPED -> word[k] = held[k] :: else fi;
#endif
  firm[k] = false;
  held[k] = 0
}

// The blocks are the remote's, which uses their memory for something else.
inline take_over() {
  check_chain(held[k], k);
  b_ = 1;
  do
  :: b_ <= BLOCKS ->
    if :: owner[b_] == k -> owner[b_] = REMOTE; next[b_] = GARBAGE :: else fi;
    b_++
  :: else -> break
  od;
  b_ = 0;
  held[k] = 0
}

active proctype remote() {
  byte k, mask, expected, rounds;
  byte held[KINDS];
  bool all;
#ifdef KEEP_FIRST_HELD
  bool again;
#endif

  do
  :: rounds < ROUNDS ->
    rounds++;
retry:
#ifdef BARRIER_FIRST
    barrier();
#endif
    k = 0;
    do
    :: k < KINDS -> stop_word(); k++
    :: k == KINDS -> break
    od;
#if !defined(NO_MEMBARRIER) && !defined(BARRIER_FIRST)
    if
    :: true -> barrier()  // not without a guard: its first `else` would speak of both options
#ifndef LIVENESS
    :: true ->            // it failed
      k = 0;
      do
      :: d_step { k < KINDS -> undo_word(); k++ }
      :: k == KINDS -> goto next_round
      od
#endif
    fi;
#endif
    k = 0;
    all = true;
    do
#ifdef NO_RECHECK
    :: d_step { k < KINDS -> firm[k] = true; k++ }
#else
    :: d_step { k < KINDS ->
         if :: word[k] == STOPPED -> firm[k] = true :: else -> all = false fi; k++ }
#endif
    :: k == KINDS -> break
    od;
    if
    :: !all ->
#ifdef KEEP_FIRST_HELD
      again = true;
#endif
      goto retry
    :: else
    fi;
    d_step {
      k = 0;
      do
      :: k < KINDS -> take_over(); k++
      :: else -> break
      od
    };
    k = 0;
    do
    :: d_step { k < KINDS -> firm[k] = false; word[k] = EMPTY; k++ }
    :: k == KINDS -> break
    od;
next_round:
    k = 0; all = false
  :: else -> break
  od;
  remote_done = true
}

#ifdef LIVENESS
ltl stop_returns { <> remote_done }  // P5
#endif
