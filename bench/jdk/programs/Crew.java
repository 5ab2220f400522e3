// SPDX-License-Identifier: MIT OR Apache-2.0
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicLongArray;

/**
 * Threads that do the same step again and again: for a while to warm up, then while it counts. For the first half of the warm-up only as many
 * work as there are processors: a thousand that interpret leave the compilers no time, and none to start the others.
 */
final class Crew {
  /** Part of the work of one thread. */
  @FunctionalInterface
  interface Step {
    /** How many operations were done. */
    long run(int thread) throws Exception;
  }

  private static final int LINE = 16; // counters in 128 bytes, so that no two threads write to one cache line

  private final AtomicLongArray done;
  private final Thread[] threads;
  private final CountDownLatch few = new CountDownLatch(1), all = new CountDownLatch(1);
  private volatile boolean stopped;
  private volatile Throwable failure;

  Crew(int count, Step step) {
    this(count, Thread.ofPlatform().daemon(), step);
  }

  Crew(int count, Thread.Builder kind, Step step) {
    done = new AtomicLongArray(LINE * (count + 1));
    threads = new Thread[count];
    for (int i = 0; i < count; i++) {
      final int number = i;
      threads[i] = kind.name("worker " + i).unstarted(() -> work(number, step));
    }
  }

  private void work(int number, Step step) {
    final int counter = LINE * (number + 1);
    try {
      (number < Runtime.getRuntime().availableProcessors() ? few : all).await();
      for (long sum = 0; !stopped;) {
        sum += step.run(number);
        done.setOpaque(counter, sum);
      }
    } catch (Throwable t) {
      failure = t;
    }
  }

  private double sum() {
    double sum = 0;
    for (int i = LINE; i < done.length(); i += LINE) {
      sum += done.getOpaque(i);
    }
    return sum;
  }

  /** Of the time after the warm-up; both in seconds. */
  Map<String, Double> measure(double warm, double measured) throws InterruptedException {
    for (Thread thread : threads) {
      thread.start();
    }
    few.countDown();
    Thread.sleep((long) (1e3 * warm / 2));
    all.countDown();
    Thread.sleep((long) (1e3 * warm / 2));
    final Window window = new Window();
    window.open();
    final double before = sum();
    Thread.sleep((long) (1e3 * measured));
    window.close();
    final double after = sum();
    stopped = true;
    for (Thread thread : threads) {
      thread.join();
    }
    if (failure != null) {
      throw new IllegalStateException("a thread failed", failure);
    }
    return window.values(after - before);
  }
}
