// SPDX-License-Identifier: MIT OR Apache-2.0
import java.util.concurrent.Semaphore;

/**
 * Threads that allocate little at a time, in four ways, of which the first three do not suit the sizing of TLABs.
 *
 *     java Bursts bursty|storm|push|virtual THREADS WARM MEASURED
 *
 * bursty: 20 objects of 48 bytes, then yield. storm: threads are started, allocate 4 KiB, and end; at most THREADS live at a time. push: threads
 * are started, at most THREADS live at a time, each pushes some nodes onto one list that all share, and ends; after THREADS the list is dropped.
 * virtual: as bursty, of virtual threads, whose objects come from the TLABs of the few threads that carry them. The operations of storm and push
 * are threads, the others' are objects.
 */
public final class Bursts {
  private static final int BURST = 20, BYTES = 4096, PUSHED = 16, STARTERS = 2;

  private record Node(Node next, long a, long b, long c) {}

  private static final class Small {
    int i;
    long a, b, c, d;
  }

  /** Kept from being optimised away: each thread has its own object. */
  private static final class Sink {
    Object last;
  }

  private static Node head; // guarded by the class

  private static synchronized void push(long value) {
    head = new Node(head, value, value, value);
  }

  private static synchronized void drop() {
    head = null;
  }

  private static Crew bursty(int count, Thread.Builder kind) {
    final Sink[] sinks = new Sink[count];
    for (int i = 0; i < count; i++) {
      sinks[i] = new Sink();
    }
    return new Crew(count, kind, thread -> {
      for (int i = 0; i < BURST; i++) {
        sinks[thread].last = new Small();
      }
      Thread.yield();
      return BURST;
    });
  }

  private static Crew storm(int count) {
    final Semaphore places = new Semaphore(count);
    return new Crew(STARTERS, starter -> {
      places.acquire();
      new Thread(() -> {
        final Sink sink = new Sink();
        for (int i = 0; i < BYTES / 256; i++) {
          sink.last = new byte[240];
        }
        places.release();
      }).start();
      return 1;
    });
  }

  private static Crew pushing(int count) {
    final Thread[] threads = new Thread[count];
    final int[] next = {0};
    return new Crew(1, starter -> {
      final int place = next[0];
      next[0] = (place + 1) % count;
      if (threads[place] != null) {
        threads[place].join();
      }
      if (place == 0) {
        drop();
      }
      threads[place] = new Thread(() -> {
        for (int k = 0; k < PUSHED; k++) {
          push(k);
        }
      });
      threads[place].start();
      return 1;
    });
  }

  public static void main(String[] words) throws InterruptedException {
    final int count = Integer.parseInt(words[1]);
    final Crew crew = switch (words[0]) {
      case "bursty" -> bursty(count, Thread.ofPlatform().daemon());
      case "virtual" -> bursty(count, Thread.ofVirtual());
      case "storm" -> storm(count);
      case "push" -> pushing(count);
      default -> throw new IllegalArgumentException(words[0]);
    };
    Window.print(crew.measure(Double.parseDouble(words[2]), Double.parseDouble(words[3])));
    System.exit(0); // a storm's last threads are nobody's
  }
}
