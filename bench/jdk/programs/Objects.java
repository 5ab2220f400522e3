// SPDX-License-Identifier: MIT OR Apache-2.0
/**
 * Threads that do nothing but allocate objects of one size, however many they are. (JMH's threads wait for each other by
 * spinning at both ends of an iteration, which takes minutes where there are a thousand on two cores.)
 *
 *     java Objects 16|48|144 THREADS WARM MEASURED      an operation is an object
 */
public final class Objects {
  private static final int BATCH = 1000;

  /** Kept from being optimised away: each thread has its own. */
  private static final class Sink {
    Object last;
  }

  private static void allocate16(Sink sink) {
    for (int i = 0; i < BATCH; i++) {
      sink.last = new Object();
    }
  }

  private static void allocate48(Sink sink) {
    for (int i = 0; i < BATCH; i++) {
      sink.last = new Cost.Small();
    }
  }

  private static void allocate144(Sink sink) {
    for (int i = 0; i < BATCH; i++) {
      sink.last = new Cost.Large();
    }
  }

  public static void main(String[] words) throws InterruptedException {
    final int size = Integer.parseInt(words[0]), count = Integer.parseInt(words[1]);
    final Sink[] sinks = new Sink[count];
    for (int i = 0; i < count; i++) {
      sinks[i] = new Sink();
    }
    final Crew crew = new Crew(count, thread -> {
      switch (size) {
        case 16 -> allocate16(sinks[thread]);
        case 48 -> allocate48(sinks[thread]);
        case 144 -> allocate144(sinks[thread]);
        default -> throw new IllegalArgumentException(words[0]);
      }
      return BATCH;
    });
    Window.print(crew.measure(Double.parseDouble(words[2]), Double.parseDouble(words[3])));
  }
}
