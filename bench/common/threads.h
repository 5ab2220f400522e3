// SPDX-License-Identifier: MIT OR Apache-2.0
// Threads started together, and threads one after the other. By pthreads and without memory of malloc: std::thread allocates.
#pragma once

#include "mapped.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <pthread.h>

namespace bench {

class Thread {
 public:
  /// `call` stays in place until the thread is joined.
  template <typename Call>
  void start(Call& call) {
    const int error = pthread_create(
        &thread_, nullptr,
        [](void* c) -> void* {
          (*static_cast<Call*>(c))();
          return nullptr;
        },
        &call);
    if (error == 0) return;
    std::fprintf(stderr, "a thread could not be started: %s\n", std::strerror(error));
    std::exit(1);
  }
  void join() { pthread_join(thread_, nullptr); }

 private:
  pthread_t thread_{};
};

/// Calls body(slot) for slots 0 .. count - 1, each on a thread of its own; all begin at once, after `begin` was called. With
/// one slot, that is the calling thread and the process has no other: malloc may be faster in such a process.
template <typename Begin, typename Body>
void together(unsigned count, Begin begin, Body body) {
  if (count == 1) {
    begin();
    body(0U);
    return;
  }
  struct Member {
    Body* body = nullptr;
    pthread_barrier_t* gate = nullptr;
    unsigned slot = 0;
    Thread thread;
    void operator()() {
      pthread_barrier_wait(gate);
      (*body)(slot);
    }
  };
  pthread_barrier_t gate;
  pthread_barrier_init(&gate, nullptr, count + 1);
  Mapped<Member> members(count);
  for (unsigned slot = 0; slot < count; ++slot) {
    Member& member = members[slot];
    member.body = &body;
    member.gate = &gate;
    member.slot = slot;
    member.thread.start(member);
  }
  begin();
  pthread_barrier_wait(&gate);
  for (Member& member : members) member.thread.join();
  pthread_barrier_destroy(&gate);
}

/// Calls body() on a new thread and waits for its end: churn, as a successor takes over what its predecessor left.
template <typename Body>
void on_new_thread(Body body) {
  Thread thread;
  thread.start(body);
  thread.join();
}

}  // namespace bench
