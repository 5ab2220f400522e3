// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Threads that keep all they make, so that it is known how many objects of each class there are: a debugger that walks the heap
 * must count the same.
 *
 *     java Kept THREADS OBJECTS
 *
 * prints "CLASS COUNT" for each class and "ready", and waits until its input ends.
 */
public final class Kept {
  static final class Small {
    int number;
  }

  static final class Middle {
    long a, b, c;
    Object other;
  }

  static final class Large {
    long a, b, c, d, e, f, g, h;
    Object other;
  }

  private static final int CLASSES = 3;

  private static Object make(int kind, Object other) {
    return switch (kind) {
      case 0 -> new Small();
      case 1 -> {
        final Middle middle = new Middle();
        middle.other = other;
        yield middle;
      }
      default -> {
        final Large large = new Large();
        large.other = other;
        yield large;
      }
    };
  }

  private static void work(int thread, Object[] kept) {
    for (int i = 0; i < kept.length; i++) {
      kept[i] = make((thread + i) % CLASSES, i == 0 ? null : kept[i - 1]);
      if (i % 256 == 0) {
        Thread.yield(); // in the middle of a buffer
      }
    }
  }

  private static long count(Object[][] all, Class<?> wanted) {
    long sum = 0;
    for (Object[] kept : all) {
      for (Object o : kept) {
        sum += o.getClass() == wanted ? 1 : 0;
      }
    }
    return sum;
  }

  public static void main(String[] arguments) throws Exception {
    final Object[][] all = new Object[Integer.parseInt(arguments[0])][Integer.parseInt(arguments[1])];
    final Thread[] threads = new Thread[all.length];
    for (int i = 0; i < threads.length; i++) {
      final int number = i;
      threads[i] = new Thread(() -> work(number, all[number]));
      threads[i].start();
    }
    for (Thread thread : threads) {
      thread.join();
    }
    for (Class<?> c : new Class<?>[] {Small.class, Middle.class, Large.class}) {
      System.out.println(c.getName() + " " + count(all, c));
    }
    System.out.println("ready");
    while (System.in.read() >= 0) {
    }
    System.exit(all[0][0] == null ? 1 : 0); // all of it is alive until here
  }
}
