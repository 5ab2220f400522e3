// SPDX-License-Identifier: MIT OR Apache-2.0
// Operations on a buffer by compare-and-swap: src/lab/cas.cpp. Part of lab_refill.pml.

inline choose_buffer() {
#if BUFFERS == 1
  at = 0
#else
  if :: at = 0 :: at = 1 fi
#endif
}

// take_from(): leaves t, the top that had no room, or REFILLING.
inline take() {
#ifdef END_FIRST
  e = limit[at];
#endif
  t = top[at];
  do
  :: t == REFILLING -> break
  :: atomic { t != REFILLING ->
#ifndef END_FIRST
       e = limit[at];
#endif
       d_step {
         n = (desired + t <= e -> desired : (least + t <= e -> e - t : 0));
#ifndef END_FIRST
         newer = e < t;  // end is newer than top
         e = 0
#endif
       };
       if
       :: n == 0 && !newer -> break
       :: else
       fi
     };
     atomic {
       if
#ifdef PLAIN_TAKE
       :: !newer ->
#else
       :: !newer && top[at] == t ->
#endif
         d_step {
           top[at] = t + n;
           got = t; got_end = t + n;
           hand_over(got, got_end, BUFFER(at), HANDS(_pid));
           check_buffer(at)
         };
         goto finished
       :: else -> newer = false; n = 0; t = top[at]
       fi
     }
  od
}

inline refill() {
  atomic {
    if
#ifdef NO_SENTINEL
    :: true
#else
    :: top[at] == t -> top[at] = REFILLING; closer[at] = ME
    :: else -> goto refused
#endif
    fi
  };
  e = limit[at];
  atomic { ask_source(LAB) };
  if
  :: lab == 0 ->
    d_step {
      CHECK_CLOSED(at);
#ifndef NOT_RESTORED
      top[at] = t; closer[at] = 0;
      check_buffer(at);
#endif
      e = 0
    }
  :: else -> install()
  fi;
refused:
  skip
}

inline operate() {
  choose_buffer();
  take();
  if
  :: t != REFILLING -> refill()
  :: true  // refilled by somebody else, or not worth it: any request may be refused
  fi;
  t = 0; e = 0;
#if BUFFERS > 1
  at = 1 - at;
  take();
  t = 0; e = 0;
#endif
  take_from_source()
}
