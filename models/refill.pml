// SPDX-License-Identifier: MIT OR Apache-2.0
//
// How magazines move between the levels: refill and spill of one size class. Code:
// src/heap/levels/block_levels.cpp, src/level/depot.h, drain_slot() in src/heap/upkeep/maintenance.cpp. What stands
// for what: README.md beside this file.
//
// A sequence is one atomic step here, on whatever slot its thread is on in that moment, and so is
// stopping a slot: stop_slot.pml shows that they may be taken so. Between two steps of a thread
// anything can happen, a change of its slot included.
//
// Checked
//   P1  Each block has one owner. Each word, and the depot, has exactly the blocks that it owns.
//   P2  A thread that has finished an operation has nothing left in its hands: no magazine is lost.
//   P3  A word gets no more rounds than its cap by frees, the depot no more magazines than fit.
//   P4  Such a thread does not have the depot's lock, and there is no deadlock.
// Threads work for ever; the search covers all states.
//
// Each #ifdef that is not a size is a mutant: check.py has the list.

#define THREADS 2
#define SLOTS 2
#define BLOCKS 3
#define CAP 2
#ifndef ROOM
#define ROOM 1                 // magazines that the depot can hold
#endif

// A word, or a hand: the round on top * 8 + rounds. Which memory a magazine has does not matter here: `below` has the rest.
#define EMPTY 0                // no magazine, or one without rounds
#define STOPPED 7
#define TOP(w) ((w) >> 3)
#define COUNT(w) ((w) & 7)
#define MAGAZINE(b, n) (((b) << 3) | (n))
#define HAS_ROUNDS(w) (TOP(w) != 0)
#define GARBAGE 255

// Owners of blocks. HAND: of a thread or of maintenance, between two levels.
#define SLABS 0
#define AT(kind, s) (1 + (kind) + (s))
#define DEPOT 5
#define PROGRAM 8
#define HAND(t) (9 + (t))

#define LOADED 0               // of each slot, at words[LOADED + s] and words[PREVIOUS + s]
#define PREVIOUS SLOTS
byte words[2 * SLOTS];
byte below[BLOCKS + 1];        // of a round: the magazine without it
byte owner[BLOCKS + 1];
byte depot[ROOM], depot_count;
byte holder;                   // of the depot's lock: thread number + 1
byte b_, n_, v_;               // scratch of the atomic steps, 0 between them

// P1: `value` names exactly the blocks that `who` owns.
inline check_magazine(value, who) {
  v_ = value;
  if :: v_ == STOPPED -> v_ = EMPTY :: else fi;
  n_ = 0;
  for (b_ : 1 .. BLOCKS) { if :: owner[b_] == who -> n_++ :: else fi }
  assert(n_ == COUNT(v_));
  do
  :: n_ > 0 ->
    assert(TOP(v_) != 0 && owner[TOP(v_)] == who);
    v_ = below[TOP(v_)];
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
  :: HAS_ROUNDS(v_) -> assert(owner[TOP(v_)] == from); owner[TOP(v_)] = to; v_ = below[TOP(v_)]
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
      :: HAS_ROUNDS(words[kind + s]) ->
        into = words[kind + s];
#ifndef TAKE_LEAVES
        words[kind + s] = EMPTY;
#endif
        hand_over(into, AT(kind, s), HAND(_pid));
        check_magazine(words[kind + s], AT(kind, s))
      :: else -> into = EMPTY
      fi;
      s = 0
    }
  }
}

inline put(kind) {  // the magazine stays in w when there is one already
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
        check_magazine(words[kind + s], AT(kind, s));
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

// P1 for the depot, whose magazines have one owner.
inline check_depot() {
  n_ = 0;
  for (b_ : 1 .. BLOCKS) { if :: owner[b_] == DEPOT -> n_++ :: else fi }
  for (b_ : 1 .. depot_count) {
    v_ = depot[b_ - 1];
    do
    :: HAS_ROUNDS(v_) -> assert(owner[TOP(v_)] == DEPOT); v_ = below[TOP(v_)]; n_--
    :: else -> break
    od
  }
  assert(n_ == 0);  // none is missing; none in two magazines, or they would count more
  b_ = 0; v_ = 0
}

inline fetch(oldest) {
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

inline unload() {
  d_step { hand_over(w, HAND(_pid), SLABS); w = EMPTY }
}

inline store() {
  if
  :: true ->  // the budget allows it
    LOCK;
    if
    :: depot_count == ROOM ->
#ifdef LOST_SPILL
      w = EMPTY;
#endif
      UNLOCK
    :: else ->
      d_step { at = depot_count; assert(at < ROOM); depot[at] = w };
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
  :: w != EMPTY -> unload()
  :: else
  fi
}

// Up to two blocks that nobody has, as a magazine. The slabs have locks of their own.
inline cut() {
  d_step {
    w = EMPTY;
    for (b_ : 1 .. BLOCKS) {
      if
      :: owner[b_] == SLABS && COUNT(w) < 2 ->
        below[b_] = w;
        w = MAGAZINE(b_, COUNT(w) + 1);
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
    :: HAS_ROUNDS(words[LOADED + s]) ->
      d_step {
        b = TOP(words[LOADED + s]);
        assert(owner[b] == AT(LOADED, s));
        words[LOADED + s] = below[b];
        owner[b] = PROGRAM; below[b] = GARBAGE; b = 0;
        check_magazine(words[LOADED + s], AT(LOADED, s));
        s = 0
      };
      goto finished
    :: else -> s = 0
    fi
  };
  // refill
  take(PREVIOUS, w);
  if :: w == EMPTY -> fetch(false) :: else fi;
  if :: w == EMPTY -> cut() :: else fi;
  if
  :: w == EMPTY -> goto finished   // null
  :: else
  fi;
  d_step {
    b = TOP(w);
    assert(owner[b] == HAND(_pid));
    w = below[b];
    owner[b] = PROGRAM; below[b] = GARBAGE; b = 0
  };
  if
  :: w != EMPTY ->
    put(LOADED);
#ifdef LOST_MAGAZINE
    w = EMPTY
#else
    if :: w != EMPTY -> store() :: else fi
#endif
  :: else
  fi
}

// The end of the operation when there was room.
inline push() {
  atomic {
    choose_slot();
    if
    :: COUNT(words[LOADED + s]) < CAP ->
      d_step {
        below[b] = words[LOADED + s];
        words[LOADED + s] = MAGAZINE(b, COUNT(words[LOADED + s]) + 1);
        owner[b] = AT(LOADED, s);
        check_magazine(words[LOADED + s], AT(LOADED, s));
        assert(COUNT(words[LOADED + s]) <= CAP);
        b = 0; s = 0
      };
      goto finished
    :: else -> s = 0
    fi
  }
}

// A full word: its magazine becomes the previous one, and what was the previous one leaves. Between the two steps somebody else
// can have put one there: then both leave.
inline spill() {
  take(LOADED, w);
  if
  :: w != EMPTY ->
    take(PREVIOUS, before);
    put(PREVIOUS);
#ifdef LOST_PREVIOUS
    if :: w == EMPTY -> w = before :: else fi;
    before = EMPTY;
#endif
    do  // which one leaves first is all the same
    :: w != EMPTY -> store()
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
      check_magazine(EMPTY, HAND(_pid))  // P2
    }
  od
}

// Drains a slot (stop, start, blocks to the slabs) or takes the oldest magazine from the depot.
active proctype maintenance() {
  byte w, s, at;
end:
  do
  :: atomic {
       choose_slot();
       d_step {
         hand_over(words[LOADED + s], AT(LOADED, s), HAND(_pid)); words[LOADED + s] = STOPPED;
         hand_over(words[PREVIOUS + s], AT(PREVIOUS, s), HAND(_pid)); words[PREVIOUS + s] = STOPPED
       }
     };
     words[LOADED + s] = EMPTY;
     d_step {
       words[PREVIOUS + s] = EMPTY; s = 0;
       for (b_ : 1 .. BLOCKS) { if :: owner[b_] == HAND(_pid) -> owner[b_] = SLABS :: else fi };
       b_ = 0
     }
  :: true ->  // not without a guard: the first `else` below would speak of both options
     fetch(true);
     if :: w != EMPTY -> unload() :: else fi
  od
}
