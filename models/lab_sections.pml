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

// A conditional store of a new top; on success the operation is done.
inline commit(new_top) {
  atomic {
    if
    :: section[at] == ME ->
      d_step {
        assert(top[at] == t);  // P2
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
    :: t != REFILLING && e >= t && e - t >= least && e - t < desired
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
           assert(top[slot] == t && limit[slot] == e);
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
    :: t == REFILLING -> goto refused
    :: t != REFILLING && (e < t || desired <= e - t) ->  // refilled meanwhile, or t and e of different times
      leave_section();
      goto again
    :: t != REFILLING && e >= t && desired > e - t -> goto refused  // not worth it
    :: t != REFILLING && e >= t && desired > e - t
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
  take_from_source()
}

active proctype preemption() {
end:
  do
  :: d_step { section[0] != 0 -> section[0] = 0 }
#if BUFFERS > 1
  :: d_step { section[1] != 0 -> section[1] = 0 }
#endif
  od
}
