// SPDX-License-Identifier: MIT OR Apache-2.0
//
// How local allocation buffers are refilled: one level of the LAB engine below the source. Code:
// src/lab/cas.cpp, and with -DRESTARTABLE src/lab/restartable.cpp; install() and Sidelined in
// src/lab/levels.cpp. What stands for what: README.md beside this file.
//
//   worker      a thread: an object or a piece (`desired` units, or what is left if it is `least`)
//               from a buffer, by a refill, or from the source. Each access to shared memory is a
//               step. Without critical sections the buffer is chosen before an operation, with
//               them at each begin: between two steps a thread may move to another slot.
//   preemption  ends an open section, at any time. So does another thread that begins on the slot.
//               A section in which a thread has called the source may read as valid all the same.
//   drainer     with DRAIN: takes what the buffers hold while threads run, and puts it aside. The
//               barrier ends all sections.
//   safepoint   when no thread is inside an operation: retires all and gives the space back.
//
// Checked
//   P1  Each unit of the space has one owner: source, buffer, hands, sidelined, object, filler.
//       A buffer owns exactly [top, end), and top <= end, unless it is closed (I1, I3 of heap.h).
//   P2  A closed buffer is written by who has closed it, and by nobody else (I2).
//   P3  A thread that has finished an operation has nothing in its hands but what it was given, no
//       lock, no open section: no LAB is lost.
//   P4  At a safepoint no buffer is closed, and every unit is accounted for.
//   P5  There is no deadlock.
// Threads work for ever; the search covers all states.
//
// Each #ifdef that is not a size, RESTARTABLE or ASCENDING (the source hands out from one end
// only) is a mutant: check.py has the list.

#ifndef THREADS
#define THREADS 2
#endif
#ifndef BUFFERS
#define BUFFERS 2
#endif
#ifndef UNITS                  // of the space: 1 .. UNITS
#ifdef RESTARTABLE
#define UNITS 4
#else
#define UNITS 6
#endif
#endif
#ifndef LAB
#define LAB 3                  // units that a refill wants
#endif
#ifndef PLACES
#define PLACES 1               // for sidelined LABs
#endif

#define REFILLING 30           // greater than every end, as in the code
#ifdef DRAIN_ONE_SENTINEL
#define DRAINING REFILLING
#else
#define DRAINING 31
#endif
#define CLOSED(t) ((t) >= REFILLING)

// Owners of units.
#define SOURCE 0
#define OBJECT 1
#define FILLER 2
#define SIDELINED 3
#define BUFFER(b) (4 + (b))
#define HANDS(t) (8 + (t))

#define ME (_pid + 1)

byte top[BUFFERS], limit[BUFFERS];
byte closer[BUFFERS];          // checks only: thread number + 1
byte owner[UNITS + 1];
byte low = 1, high = UNITS + 1;  // what the source has
byte inside;                   // threads in an operation
byte u_;                       // scratch of the atomic steps, 0 between them
#ifdef RESTARTABLE
byte section[BUFFERS];         // the thread whose section on this slot is open and valid; number + 1
byte side_start[PLACES], side_end[PLACES], side_count;
byte holder;                   // of the sidelined's lock: thread number + 1
#endif

// The units [from, to) change hands.
inline hand_over(from, to, old_owner, new_owner) {
  u_ = from;
  do
  :: u_ < to -> assert(owner[u_] == old_owner); owner[u_] = new_owner; u_++
  :: else -> break
  od;
  u_ = 0
}

// P1
inline check_buffer(b) {
  if
  :: CLOSED(top[b])
  :: else ->
    assert(top[b] <= limit[b]);
    for (u_ : 1 .. UNITS) {
      assert((owner[u_] == BUFFER(b)) == (top[b] <= u_ && u_ < limit[b]))
    }
    u_ = 0
  fi
}

// P2. These mutants do not close in the first place: what they do to the units has to be found.
#if defined(NO_SENTINEL) || defined(PLAIN_CLOSE) || defined(SIDELINED_AND_USED)
#define CHECK_CLOSED(b) skip
#else
#define CHECK_CLOSED(b) assert(top[b] == REFILLING && closer[b] == ME)
#endif

// `wanted` units or what is left, if it is `least`; from either end of the space. None: lab is 0.
inline ask_source(wanted) {
  if
  :: high - low < least
  :: high - low >= least ->
    n = (high - low < wanted -> high - low : wanted);
    if
    :: d_step { lab = low; low = low + n }
#ifndef ASCENDING
    :: d_step { high = high - n; lab = high }
#endif
    fi;
    d_step {
      lab_end = lab + n;
      hand_over(lab, lab_end, SOURCE, HANDS(_pid));
      n = 0
    }
  fi
}

inline take_from_source() {
  atomic {
    ask_source(desired);
    d_step { got = lab; got_end = lab_end; lab = 0; lab_end = 0 }
  }
}

// Buffer `at`, which was [t, e), is closed; [lab, lab_end) is in the hands.
inline install() {
  d_step {
    if
    :: e == lab -> got = t  // neighbours
    :: else ->
      got = lab;
      CHECK_CLOSED(at);
#ifndef OLD_TAIL_LOST
      hand_over(t, e, BUFFER(at), FILLER)
#endif
    fi;
    next = got + (lab_end - got < desired -> lab_end - got : desired);
    t = 0; e = 0
  };
#ifndef END_AFTER_TOP
  store_end();
#endif
  d_step {
    CHECK_CLOSED(at);
    top[at] = next; closer[at] = 0; got_end = next;
    // What was the buffer's before: [got, lab).
    n = (next < lab -> next : lab);
    hand_over(got, n, BUFFER(at), HANDS(_pid));
    n = (next < lab -> lab : next);
    hand_over(n, lab_end, HANDS(_pid), BUFFER(at));
    n = 0;
#ifndef END_AFTER_TOP
    check_buffer(at)
#endif
  };
#ifdef END_AFTER_TOP
  d_step { limit[at] = lab_end; check_buffer(at) };
#endif
  goto finished
}

inline store_end() {
  d_step { CHECK_CLOSED(at); limit[at] = lab_end }
}

inline choose_request() {
  if
  :: least = 1; desired = 1
  :: least = 2; desired = 2
  :: least = 1; desired = 2
  fi
}

#ifdef RESTARTABLE
#include "lab_sections.pml"
#else
#include "lab_cas.pml"
#endif

active [THREADS] proctype worker() {
  byte least, desired;
  byte at, t, e;               // a buffer, and its top and end as they were read
  byte lab, lab_end, next, n;
  byte got, got_end;
#ifdef RESTARTABLE
  byte slot;
#else
  bool newer;
#endif

end:
  do
  :: atomic { choose_request(); inside++ };
again:
    operate();
finished:
    skip;
    d_step {
      hand_over(got, got_end, HANDS(_pid), OBJECT);
      for (u_ : 1 .. UNITS) { assert(owner[u_] != HANDS(_pid)) }  // P3
      u_ = 0;
#ifdef RESTARTABLE
      assert(holder != ME);
      close_section();
      slot = 0;
#endif
      least = 0; desired = 0; at = 0; t = 0; e = 0;
      lab = 0; lab_end = 0; next = 0; n = 0; got = 0; got_end = 0;
      inside--
    }
  od
}

// retire_all() and a collection, one step since the world is stopped: the state is as at first.
active proctype safepoint() {
end:
  do
  :: d_step { inside == 0 ->
       u_ = 0;
       do  // P4
       :: u_ < BUFFERS ->
         assert(!CLOSED(top[u_]) && top[u_] <= limit[u_]);
         closer[u_] = top[u_];
         do
         :: closer[u_] < limit[u_] ->
           assert(owner[closer[u_]] == BUFFER(u_)); owner[closer[u_]] = FILLER; closer[u_]++
         :: else -> break
         od;
         top[u_] = 0; limit[u_] = 0; closer[u_] = 0;
         u_++
       :: else -> break
       od;
#ifdef RESTARTABLE
       do
       :: side_count > 0 ->
         side_count--;
         hand_over(side_start[side_count], side_end[side_count], SIDELINED, FILLER);
         side_start[side_count] = 0; side_end[side_count] = 0
       :: else -> break
       od;
#endif
       for (u_ : 1 .. UNITS) {
         assert(owner[u_] == (low <= u_ && u_ < high -> SOURCE : (owner[u_] == OBJECT -> OBJECT : FILLER)));
         owner[u_] = SOURCE
       }
       u_ = 0; low = 1; high = UNITS + 1
     }
  od
}
