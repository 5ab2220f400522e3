// SPDX-License-Identifier: MIT OR Apache-2.0
//
// stop_slot: taking the words of a slot away from the threads that work on it by restartable
// sequences. Code: stop_words() and start_words() in src/percpu/stop_slot.cpp, the sequences in
// src/arch/. What stands for what: README.md beside this file.
//
//   owner    a thread: pop_round, push_round, take_all, put_all on the words of the slot it runs on.
//            It moves only while it has a CPU. At any step it may lose the CPU, and get another CPU
//            or another slot later. An abort takes it back to LOAD.
//   memory   lets the store buffers of a CPU drain, at any time: one of a word and one of a round,
//            in any order.
//   remote   stops the words of slot 0, takes what they held, starts them again; ROUNDS times.
//
// Checked
//   P1  Each block and each magazine has one owner: a word, a thread, the remote. The magazine in a
//       word has exactly the blocks that the word owns, and who takes it reads them in its places.
//   P2  From the moment the remote, after the barrier, sees a word stopped until it starts it, no
//       commit is done on it and none lands on it, nor does a round on the magazine that it held.
//   P3  A pop never reads a place of a magazine that has another owner by then.
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
#define LEAVE me.at = IDLE; me.op = 0; me.kind = 0; me.i = 0; me.w = 0; me.top = 0; me.new = 0

inline begin() {
#ifndef ENDLESS_OWNERS
  me.left--;
#endif
  if
  :: me.block == 0 -> me.op = POP
  :: me.block != 0 -> me.op = PUSH
  :: me.own == EMPTY -> me.op = TAKE_ALL
  :: me.own != EMPTY -> me.op = PUT_ALL
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
  :: me.op == POP && MAGAZINE(x_) != 0 && COUNT(x_) > 0 -> me.w = x_; me.new = x_ - 1; me.at = FOLLOW
  :: me.op == PUSH && MAGAZINE(x_) != 0 && COUNT(x_) < LIMIT -> me.w = x_; me.new = x_ + 1; me.at = FOLLOW
  :: me.op == TAKE_ALL && MAGAZINE(x_) != 0 -> me.w = x_; me.at = COMMIT
  :: me.op == PUT_ALL && x_ == EMPTY -> me.new = me.own; me.at = COMMIT
  :: else -> LEAVE        // empty, full, occupied: the next level
  fi;
  x_ = 0
}

inline store_round(at_, what) {
  round_at[me.cpu] = at_;
  round_to_be[me.cpu] = what
}

// A pop reads the round on top; a push writes the place above it. Only the word's owner does.
#define BUFFER_ALLOWS_FOLLOW (me.op == POP || round_at[me.cpu] == NONE)
inline follow() {
  if
  :: me.op == POP ->
    assert(magazine_owner[MAGAZINE(me.w)] == me.i);  // P3
    me.top = ROUND(me.cpu, BEHIND_TOP(me.new))
  :: else ->
#ifndef LATE_ROUND
    store_round(BEHIND_TOP(me.w), me.block)
#endif
  fi;
  me.at = COMMIT
}

#ifdef FILL
// A thread that has a magazine of its own may push onto it: nobody else knows it.
#define MAY_FILL (me.block != 0 && me.own != EMPTY && COUNT(me.own) < LIMIT && round_at[me.cpu] == NONE)
inline fill() {
  store_round(BEHIND_TOP(me.own), me.block);
  me.own++;
  me.block = 0
}
#endif

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

// The place that a pop leaves keeps its round, which nobody must believe: it is garbage at once here.
inline forget_top() {
  if
  :: round_at[me.cpu] != BEHIND_TOP(me.new) -> round[BEHIND_TOP(me.new)] = GARBAGE
  :: else
  fi
}

inline commit() {
#ifdef SLOT_REREAD
  me.i = MY_WORD;
#endif
  assert(!firm[me.i]);  // P2
  store(me.new);
  if
  :: me.op == POP ->
    me.block = me.top;
    assert(me.block >= 1 && me.block <= BLOCKS && owner[me.block] == me.i);
    owner[me.block] = THREAD(_pid);
    forget_top()
  :: me.op == PUSH ->
    owner[me.block] = me.i;
#ifndef LATE_ROUND
    me.block = 0
#endif
  :: me.op == TAKE_ALL ->
    check(me.w, me.i, me.cpu);
    me.own = me.w;
    hand_over(me.own, THREAD(_pid), me.cpu)
  :: me.op == PUT_ALL -> hand_over(me.own, me.i, me.cpu); me.own = EMPTY
  fi;
#ifdef LATE_ROUND
  if
  :: me.op == PUSH -> me.at = AFTER
  :: else -> LEAVE
  fi
#else
  check(me.new, me.i, me.cpu);  // P1
  LEAVE
#endif
}

#ifdef LATE_ROUND
inline after() {
  store_round(BEHIND_TOP(me.w), me.block);
  me.block = 0;
  LEAVE
}
#endif

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
#ifdef FILL
  :: d_step { RUNS && me.at == IDLE && me.left > 0 && MAY_FILL -> fill() }
#endif
  :: d_step { RUNS && me.at == FOLLOW && BUFFER_ALLOWS_FOLLOW -> follow() }
#ifdef LATE_ROUND
  :: d_step { RUNS && me.at == AFTER && round_at[me.cpu] == NONE -> after() }
#endif
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
  :: d_step { pending_at[0] != NONE -> drain_word(0) }
  :: d_step { pending_at[1] != NONE -> drain_word(1) }
  :: d_step { round_at[0] != NONE -> drain_round(0) }
  :: d_step { round_at[1] != NONE -> drain_round(1) }
  :: atomic { OWNERS_DONE && remote_done && pending_at[0] == NONE && pending_at[1] == NONE &&
              round_at[0] == NONE && round_at[1] == NONE ->
       d_step {  // P4
         x_ = 0;
         do
         :: x_ < WORDS -> check(word[x_], x_, NONE); x_++
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

#ifdef EARLY_READ
// The rounds as they are as soon as the word is stopped.
inline read_early() {
  x_ = 0;
  do
  :: x_ < COUNT(held[k]) -> early[k * LIMIT + x_] = round[PLACE(MAGAZINE(held[k]), x_)]; x_++
  :: else -> break
  od;
  x_ = 0
}
#endif

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
       word[k] = STOPPED; expected = 0;
#ifdef EARLY_READ
       read_early();
#endif
       break }
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

// What the word held is the remote's, which uses the memory of blocks and magazine for something else.
inline take_over() {
#ifdef EARLY_READ
  x_ = 0;
  do
  :: x_ < COUNT(held[k]) -> round[PLACE(MAGAZINE(held[k]), x_)] = early[k * LIMIT + x_]; x_++
  :: else -> break
  od;
  x_ = 0;
#endif
  check(held[k], k, NONE);
  if
  :: held[k] != EMPTY ->
    hand_over(held[k], REMOTE, NONE);
    x_ = 0;
    do
    :: x_ < LIMIT -> round[PLACE(MAGAZINE(held[k]), x_)] = GARBAGE; x_++
    :: else -> break
    od;
    x_ = 0
  :: else
  fi;
  held[k] = 0
}

active proctype remote() {
  byte k, mask, expected, rounds;
  byte held[KINDS];
#ifdef EARLY_READ
  byte early[KINDS * LIMIT];
#endif
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
