// SPDX-License-Identifier: MIT OR Apache-2.0
/** Threads that only allocate objects of 48 bytes: `java Allocate THREADS OBJECTS`, of each thread. */
public final class Allocate {
  private static final int BATCH = 1000;

  /** A header of 12 bytes, with compressed class pointers, and 36 of fields. */
  private static final class Small {
    int a;
    long b, c, d, e;
  }

  /** Kept from being optimised away: each thread has its own. */
  private static final class Sink {
    Object last;
  }

  private static void allocate(Sink sink) {
    for (int i = 0; i < BATCH; i++) {
      sink.last = new Small();
    }
  }

  public static void main(String[] words) throws InterruptedException {
    final long objects = Long.parseLong(words[1]);
    final Thread[] threads = new Thread[Integer.parseInt(words[0])];
    for (int i = 0; i < threads.length; i++) {
      threads[i] = new Thread(() -> {
        final Sink sink = new Sink();
        for (long done = 0; done < objects; done += BATCH) {
          allocate(sink);
        }
      });
      threads[i].start();
    }
    for (Thread thread : threads) {
      thread.join();
    }
    System.gc(); // HotSpot counts refills at collections
  }
}
