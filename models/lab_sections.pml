// SPDX-License-Identifier: MIT OR Apache-2.0
// Operations on the buffer of a slot by critical sections: src/lab/restartable.cpp. Part of lab_refill.pml.

inline open_section() {
  if
  :: at = 0
#if BUFFERS > 1
  :: at = 1
#endif
  fi;
  d_step {
    close_section();
    section[at] = ME  // who had one here was interrupted
  }
}

inline close_section() {
  for (u_ : 0 .. BUFFERS - 1) { if :: section[u_] == ME -> section[u_] = 0 :: else fi }
  u_ = 0
}

inline leave_section() {
  d_step { close_section(); t = 0; e = 0; at = 0 }
}

// A bump sequence: the kernel restarts it when it was disturbed. Who opens a closed buffer does not disturb it.
#ifdef END_FIRST
#define READ_FIRST e = limit[at]
#define READ_SECOND t = top[at]
#else
#define READ_FIRST t = top[at]
#define READ_SECOND e = limit[at]
#endif
inline bump() {
  do
  :: atomic { true -> open_section(); READ_FIRST };
    atomic {
      READ_SECOND;
      if
      :: t + desired > e -> leave_section(); break
      :: else
      fi
    };
    commit(t + desired)
  od
}

// What a commit may find: what it has read, or that somebody is about to drain the buffer, who will see the commit.
#ifdef DRAIN
#define AS_READ(now, then) ((now) == (then) || (now) == DRAINING)
#else
#define AS_READ(now, then) ((now) == (then))
#endif

// A conditional store of a new top; on success the operation is done.
inline commit(new_top) {
  atomic {
    if
    :: section[at] == ME ->
      d_step {
        assert(AS_READ(top[at], t));  // P2
        got = t; got_end = new_top;
        top[at] = got_end;
        hand_over(got, got_end, BUFFER(at), HANDS(_pid));
        check_buffer(at)
      };
      goto finished
    :: else
    fi
  }
}

inline take_tail() {
  atomic { open_section(); t = top[at] };
  atomic {
    e = limit[at];
    if
    :: !CLOSED(t) && e >= t && e - t >= least && e - t < desired
    :: else -> goto no_tail
    fi
  };
  commit(e);
no_tail:
  skip;
  leave_section()
}

#ifdef SIDELINED_NO_LOCK
#define LOCK skip
#define UNLOCK skip
#else
#define LOCK atomic { holder == 0 -> holder = ME }
#define UNLOCK holder = 0
#endif

inline take_sidelined() {
  if
  :: side_count == 0  // without the lock: a hint
  :: else ->
    LOCK;
    d_step {
      n = 0;
      do
      :: n < side_count && side_end[n] - side_start[n] < least -> n++
      :: else -> break
      od
    };
    if
    :: n >= side_count
    :: else ->
      d_step { lab = side_start[n]; lab_end = side_end[n] };
      d_step {
        assert(side_count > 0);
        side_count--;
        side_start[n] = side_start[side_count]; side_end[n] = side_end[side_count];
        side_start[side_count] = 0; side_end[side_count] = 0;
        hand_over(lab, lab_end, SIDELINED, HANDS(_pid))
      }
    fi;
    d_step { n = 0; UNLOCK }
  fi
}

#ifdef DRAIN
// For a request that is not worth a refill, or can not have one: the operation is done.
inline cut_sidelined() {
  if
  :: side_count == 0
  :: else ->
    LOCK;
    if
    :: side_count > 0 && side_end[0] - side_start[0] >= least ->
      d_step {
        n = (side_end[0] - side_start[0] < desired -> side_end[0] - side_start[0] : desired);
        got = side_start[0]; got_end = got + n;
        hand_over(got, got_end, SIDELINED, HANDS(_pid));
        side_start[0] = got_end;
        n = 0;
        if
        :: side_start[0] == side_end[0] ->
          side_count--;
          side_start[0] = side_start[side_count]; side_end[0] = side_end[side_count];
          side_start[side_count] = 0; side_end[side_count] = 0
        :: else
        fi;
        UNLOCK
      };
      goto finished
    :: else -> UNLOCK
    fi
  fi
}
#endif

inline sideline() {
  LOCK;
  if
  :: side_count == PLACES ->
    UNLOCK;
    d_step { hand_over(lab, lab_end, HANDS(_pid), FILLER) }
  :: else ->
    d_step { side_start[side_count] = lab; side_end[side_count] = lab_end };
    d_step { side_count++; hand_over(lab, lab_end, HANDS(_pid), SIDELINED); UNLOCK }
  fi;
#ifdef SIDELINED_AND_USED
  at = slot;
  install();
#endif
  d_step { lab = 0; lab_end = 0 }
}

// Back from a call that may have blocked, on any slot. Either the kernel has ended the section, or (Linux from 6.19 on) it has
// not looked at it: it reads as valid, whoever had the slot meanwhile.
inline return_from_call() {
  if
  :: true -> skip
  :: true ->
    d_step { close_section(); section[0] = ME; at = 0 }
#if BUFFERS > 1
  :: true ->
    d_step { close_section(); section[1] = ME; at = 1 }
#endif
  fi
}

// Sets `at`, the slot that the section is open on.
inline reopen() {
#ifdef PLAIN_CLOSE
  skip
#else
  atomic { open_section() };
#ifndef SLOT_NOT_COMPARED
  if :: at != slot -> goto sidelined :: else fi;
#endif
#ifndef BOUNDS_NOT_COMPARED
  if :: top[slot] != t -> goto sidelined :: else fi;
  if :: limit[slot] != e -> goto sidelined :: else fi
#endif
#endif
}

inline close_buffer() {
#ifndef SECTION_TRUSTED
  reopen();
#endif
  do
  :: atomic {
       if
#ifdef PLAIN_CLOSE
       :: true ->
#else
       :: section[at] == ME ->
#endif
         d_step {
#ifndef PLAIN_CLOSE
#ifndef BOUNDS_NOT_COMPARED
           assert(AS_READ(top[slot], t) && limit[slot] == e);
#endif
#endif
           top[slot] = REFILLING; closer[slot] = ME;
           at = slot; slot = 0;
           close_section()
         };
         break
#ifndef PLAIN_CLOSE
       :: else
#endif
       fi
     };
     reopen()
  od
}

inline operate() {
  bump();
  if
  :: least < desired -> take_tail()
  :: else
  fi;
  // refill_restartably()
  atomic { open_section(); t = top[at] };
  atomic {
    e = limit[at];
    if
    :: CLOSED(t) -> goto refused
    :: !CLOSED(t) && (e < t || desired <= e - t) ->  // refilled meanwhile, or t and e of different times
      leave_section();
      goto again
    :: !CLOSED(t) && e >= t && desired > e - t -> goto refused  // not worth it
    :: !CLOSED(t) && e >= t && desired > e - t
    fi
  };
  take_sidelined();
  if
  :: lab == 0 ->
    atomic {
      ask_source(LAB);
      if
      :: lab == 0 -> goto refused
      :: else
      fi
    }
  :: else
  fi;
  slot = at;
  return_from_call();
  close_buffer();
  install();
sidelined:
  skip;
  d_step { close_section(); at = 0 };
#ifdef LAB_DROPPED
  d_step { lab = 0; lab_end = 0 };
#else
  sideline();
#endif
  d_step { t = 0; e = 0; slot = 0 };
  goto again;
refused:
  skip;
  leave_section();
#ifdef DRAIN
  cut_sidelined();
#endif
  take_from_source()
}

#ifdef DRAIN
// drain.cpp. The state of a buffer in a drain: what top was; NOT_STOPPED, as in the code a value that no top has.
#define NOT_STOPPED REFILLING

inline stop(b) {
  atomic {
    if
    :: top[b] < limit[b] -> old[b] = top[b]; top[b] = DRAINING
    :: else -> old[b] = NOT_STOPPED
    fi
  }
}

active proctype drainer() {
  byte old[BUFFERS];
  byte b;
  bool more;

end:
  do
  :: inside++;
    do
    :: b < BUFFERS -> stop(b); b++
    :: else -> break
    od;
barrier:
    skip;
#ifndef DRAIN_NO_BARRIER
    d_step {
      for (u_ : 0 .. BUFFERS - 1) { section[u_] = 0 }
      u_ = 0
    };
#endif
    d_step { b = 0; more = false };
    do
    :: b < BUFFERS ->
      if
#ifndef DRAIN_NO_SECOND_LOOK
      :: old[b] != NOT_STOPPED && top[b] != DRAINING ->
        stop(b);
        if :: old[b] != NOT_STOPPED -> more = true :: else fi
#endif
      :: old[b] == NOT_STOPPED || top[b] == DRAINING
#ifdef DRAIN_NO_SECOND_LOOK
      :: old[b] != NOT_STOPPED && top[b] != DRAINING
#endif
      fi;
      b++
    :: else -> break
    od;
    if :: more -> goto barrier :: else fi;
    b = 0;
    do
    :: b < BUFFERS && old[b] != NOT_STOPPED ->
      LOCK;
      if
      :: side_count == PLACES ->
        UNLOCK;
        d_step { assert(top[b] == DRAINING); top[b] = old[b]; check_buffer(b) }  // P2
      :: else ->
        d_step {
          side_start[side_count] = old[b]; side_end[side_count] = limit[b];
          hand_over(old[b], limit[b], BUFFER(b), SIDELINED);
          side_count++;
          UNLOCK
        };
        d_step { assert(top[b] == DRAINING); top[b] = limit[b]; check_buffer(b) }  // P2
      fi;
      old[b] = 0;
      b++
    :: b < BUFFERS && old[b] == NOT_STOPPED -> old[b] = 0; b++
    :: b >= BUFFERS -> break
    od;
    skip;
    d_step { b = 0; more = false; inside-- }
  od
}
#endif

active proctype preemption() {
end:
  do
  :: d_step { section[0] != 0 -> section[0] = 0 }
#if BUFFERS > 1
  :: d_step { section[1] != 0 -> section[1] = 0 }
#endif
  od
}
