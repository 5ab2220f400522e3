// SPDX-License-Identifier: MIT OR Apache-2.0
//
// How chains move between the levels: refill and spill of one size class. Code:
// src/heap/transfer.cpp, src/level/depot.h, drain_slot() in src/heap/maintenance.cpp. What stands
// for what: README.md beside this file.
//
// A sequence is one atomic step here, on whatever slot its thread is on in that moment, and so is
// stopping a slot: stop_slot.pml shows that they may be taken so. Between two steps of a thread
// anything can happen, a change of its slot included.
//
// Checked
//   P1  Each block has one owner. Each word, and the depot, has exactly the blocks that it owns.
//   P2  A thread that has finished an operation has nothing left in its hands: no chain is lost.
//   P3  A word gets no longer than its cap by frees, the depot no more chains than fit.
//   P4  Such a thread does not have the depot's lock, and there is no deadlock.
// Threads work for ever; the search covers all states.
//
// Each #ifdef that is not a size is a mutant: check.py has the list.

#define THREADS 2
#define SLOTS 2
#define BLOCKS 3
#define CAP 2
#ifndef CHAINS
#define CHAINS 1               // that the depot can hold
#endif

#define EMPTY 0                // words as in stop_slot.pml
#define STOPPED 7
#define FIRST(w) ((w) >> 3)
#define COUNT(w) ((w) & 7)
#define CHAIN(b, n) (((b) << 3) | (n))
#define HAS_BLOCKS(w) (FIRST(w) != 0)
#define GARBAGE 255

// Owners of blocks. HAND: of a thread or of maintenance, between two levels.
#define SLABS 0
#define AT(kind, s) (1 + (kind) + (s))
#define DEPOT 5
#define PROGRAM 8
#define HAND(t) (9 + (t))

#define WORD 0                 // of each slot, at words[WORD + s] and words[RESERVE + s]
#define RESERVE SLOTS
byte words[2 * SLOTS];
byte next[BLOCKS + 1];
byte owner[BLOCKS + 1];
byte depot[CHAINS], depot_count;
byte holder;                   // of the depot's lock: thread number + 1
byte b_, n_, v_;               // scratch of the atomic steps, 0 between them

// P1: `value` names exactly the blocks that `who` owns.
inline check_chain(value, who) {
  v_ = value;
  if :: v_ == STOPPED -> v_ = EMPTY :: else fi;
  n_ = 0;
  for (b_ : 1 .. BLOCKS) { if :: owner[b_] == who -> n_++ :: else fi }
  assert(n_ == COUNT(v_));
  do
  :: n_ > 0 ->
    assert(FIRST(v_) != 0 && owner[FIRST(v_)] == who);
    v_ = next[FIRST(v_)];
    n_--;
    assert(COUNT(v_) == n_)
  :: else -> break
  od;
  assert(v_ == EMPTY);
  b_ = 0
}

// The blocks of `value` change hands.
inline hand_over(value, from, to) {
  v_ = value;
  do
  :: HAS_BLOCKS(v_) -> assert(owner[FIRST(v_)] == from); owner[FIRST(v_)] = to; v_ = next[FIRST(v_)]
  :: else -> break
  od;
  v_ = 0
}

inline choose_slot() {
  if :: s = 0 :: s = 1 fi
}

// Sequences.
inline take(kind, into) {
  atomic {
    choose_slot();
    d_step {
      if
      :: HAS_BLOCKS(words[kind + s]) ->
        into = words[kind + s];
#ifndef TAKE_LEAVES
        words[kind + s] = EMPTY;
#endif
        hand_over(into, AT(kind, s), HAND(_pid));
        check_chain(words[kind + s], AT(kind, s))
      :: else -> into = EMPTY
      fi;
      s = 0
    }
  }
}

inline put(kind) {  // the chain stays in w when there is one already
  atomic {
    choose_slot();
    d_step {
      if
#ifdef NO_OCCUPIED_CHECK
      :: true ->
#else
      :: words[kind + s] == EMPTY ->
#endif
        words[kind + s] = w;
        hand_over(w, HAND(_pid), AT(kind, s));
        check_chain(words[kind + s], AT(kind, s));
        w = EMPTY
      :: else
      fi;
      s = 0
    }
  }
}

// The depot. Reading or writing an entry and writing the count are two steps under the lock.
#ifdef DEPOT_NO_LOCK
#define LOCK skip
#define UNLOCK skip
#else
#define LOCK atomic { holder == 0 -> holder = _pid + 1 }
#define UNLOCK holder = 0
#endif

// P1 for the depot, whose chains have one owner.
inline check_depot() {
  n_ = 0;
  for (b_ : 1 .. BLOCKS) { if :: owner[b_] == DEPOT -> n_++ :: else fi }
  for (b_ : 1 .. depot_count) {
    v_ = depot[b_ - 1];
    do
    :: HAS_BLOCKS(v_) -> assert(owner[FIRST(v_)] == DEPOT); v_ = next[FIRST(v_)]; n_--
    :: else -> break
    od
  }
  assert(n_ == 0);  // none is missing; none in two chains, or the chains would count more
  b_ = 0; v_ = 0
}

inline fetch_chain(oldest) {
  if
  :: depot_count == 0   // without the lock: a hint
  :: else ->
    LOCK;
    if
#ifdef DEPOT_NO_SECOND_LOOK
    :: true ->
#else
    :: depot_count == 0
    :: else ->
#endif
      d_step {
        assert(depot_count > 0);
        at = depot_count - 1;
        if :: oldest -> w = depot[0]; depot[0] = depot[at] :: else -> w = depot[at] fi
      };
      d_step {
        depot_count = at; depot[at] = EMPTY; at = 0;
        hand_over(w, DEPOT, HAND(_pid));
        check_depot()
      }
    fi;
    UNLOCK
  fi
}

inline put_back() {
  d_step { hand_over(w, HAND(_pid), SLABS); w = EMPTY }
}

inline store_chain() {
  if
  :: true ->  // the budget allows it
    LOCK;
    if
    :: depot_count == CHAINS ->
#ifdef LOST_SPILL
      w = EMPTY;
#endif
      UNLOCK
    :: else ->
      d_step { at = depot_count; assert(at < CHAINS); depot[at] = w };
      d_step {
        depot_count = at + 1; at = 0;
        hand_over(w, HAND(_pid), DEPOT);
        w = EMPTY;
        check_depot()
      };
#ifndef LOCK_KEPT
      UNLOCK
#endif
    fi
  :: true
  fi;
  if
  :: w != EMPTY -> put_back()
  :: else
  fi
}

// Up to two blocks that nobody has, as a chain. The slabs have locks of their own.
inline cut() {
  d_step {
    w = EMPTY;
    for (b_ : 1 .. BLOCKS) {
      if
      :: owner[b_] == SLABS && COUNT(w) < 2 ->
        next[b_] = w;
        w = CHAIN(b_, COUNT(w) + 1);
        owner[b_] = HAND(_pid)
      :: else
      fi
    };
    b_ = 0
  }
}

// malloc, from the pop on. The block goes to the program.
inline allocate_block() {
  atomic {
    choose_slot();
    if
    :: HAS_BLOCKS(words[WORD + s]) ->
      d_step {
        b = FIRST(words[WORD + s]);
        assert(owner[b] == AT(WORD, s));
        words[WORD + s] = next[b];
        owner[b] = PROGRAM; next[b] = GARBAGE; b = 0;
        check_chain(words[WORD + s], AT(WORD, s));
        s = 0
      };
      goto finished
    :: else -> s = 0
    fi
  };
  // refill
  take(RESERVE, w);
  if :: w == EMPTY -> fetch_chain(false) :: else fi;
  if :: w == EMPTY -> cut() :: else fi;
  if
  :: w == EMPTY -> goto finished   // null
  :: else
  fi;
  d_step {
    b = FIRST(w);
    assert(owner[b] == HAND(_pid));
    w = next[b];
    owner[b] = PROGRAM; next[b] = GARBAGE; b = 0
  };
  if
  :: w != EMPTY ->
    put(WORD);
#ifdef LOST_CHAIN
    w = EMPTY
#else
    if :: w != EMPTY -> store_chain() :: else fi
#endif
  :: else
  fi
}

// The end of the operation when there was room.
inline push() {
  atomic {
    choose_slot();
    if
    :: COUNT(words[WORD + s]) < CAP ->
      d_step {
        next[b] = words[WORD + s];
        words[WORD + s] = CHAIN(b, COUNT(words[WORD + s]) + 1);
        owner[b] = AT(WORD, s);
        check_chain(words[WORD + s], AT(WORD, s));
        assert(COUNT(words[WORD + s]) <= CAP);
        b = 0; s = 0
      };
      goto finished
    :: else -> s = 0
    fi
  }
}

// A full word: its chain becomes the reserve, and what was the reserve leaves. Between the two steps somebody else can have put
// a reserve there: then both chains leave.
inline spill() {
  take(WORD, w);
  if
  :: w != EMPTY ->
    take(RESERVE, before);
    put(RESERVE);
#ifdef LOST_RESERVE
    if :: w == EMPTY -> w = before :: else fi;
    before = EMPTY;
#endif
    do  // which one leaves first is all the same
    :: w != EMPTY -> store_chain()
    :: w == EMPTY && before != EMPTY -> d_step { w = before; before = EMPTY }
    :: else -> break
    od
  :: else
  fi
}

inline free_block() {
  push();
  spill();
  push();
  d_step { owner[b] = SLABS; b = 0 }
}

active [THREADS] proctype program() {
  byte w, before, b, s, at;
end:
  do
  :: allocate_block(); goto finished
  :: atomic {
       if
       :: owner[1] == PROGRAM -> b = 1
       :: owner[2] == PROGRAM -> b = 2
       :: owner[3] == PROGRAM -> b = 3
       fi;
       owner[b] = HAND(_pid) };
     free_block();
finished:
    skip;
    d_step {
      w = 0; s = 0;
      assert(holder != _pid + 1);  // P4
      check_chain(EMPTY, HAND(_pid))  // P2
    }
  od
}

// Drains a slot (stop, start, blocks to the slabs) or takes the oldest chain from the depot.
active proctype maintenance() {
  byte w, s, at;
end:
  do
  :: atomic {
       choose_slot();
       d_step {
         hand_over(words[WORD + s], AT(WORD, s), HAND(_pid)); words[WORD + s] = STOPPED;
         hand_over(words[RESERVE + s], AT(RESERVE, s), HAND(_pid)); words[RESERVE + s] = STOPPED
       }
     };
     words[WORD + s] = EMPTY;
     d_step {
       words[RESERVE + s] = EMPTY; s = 0;
       for (b_ : 1 .. BLOCKS) { if :: owner[b_] == HAND(_pid) -> owner[b_] = SLABS :: else fi };
       b_ = 0
     }
  :: true ->  // not without a guard: the first `else` below would speak of both options
     fetch_chain(true);
     if :: w != EMPTY -> put_back() :: else fi
  od
}
