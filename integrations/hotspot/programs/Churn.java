// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Threads that allocate, keep some of it and look at it again: what one thread computes depends on its number alone, so all JVMs
 * must print the same, whatever their collector and buffers do.
 *
 *     java Churn.java THREADS ROUNDS
 *
 * A round is a tree, some strings, and an array of 16 bytes to 64 KiB, now and then of 1 MiB; every 64th round yields, so that
 * threads share cores in the middle of their buffers.
 */
import java.util.Arrays;

public final class Churn {
  private static final int KEPT = 256;

  private record Node(Node left, Node right, long value) {
    static Node tree(int depth, long value) {
      return depth == 0 ? new Node(null, null, value)
                        : new Node(tree(depth - 1, 2 * value), tree(depth - 1, 2 * value + 1), value);
    }

    long sum() {
      return value + (left == null ? 0 : left.sum() + 3 * right.sum());
    }
  }

  private static long next(long seed) {
    return seed * 6364136223846793005L + 1442695040888963407L;
  }

  private static int arrayLength(long seed) {
    final int bits = (int) (seed >>> 40 & 1023);
    return bits == 0 ? 1 << 17 : 2 + (int) (seed >>> 20 & 15) * (1 << bits % 10);
  }

  private static long check(Object kept) {
    if (kept instanceof Node tree) {
      return tree.sum();
    }
    if (kept instanceof long[] array) {
      for (int i = 1; i < array.length; i++) {
        if (array[i] != array[0] + i) {
          throw new IllegalStateException("element " + i + " of " + array.length + " is " + array[i]);
        }
      }
      return array[0] * array.length;
    }
    return kept == null ? 0 : kept.hashCode();
  }

  private static Object make(int kind, long seed) {
    return switch (kind) {
      case 0 -> Node.tree(5, seed & 0xffff);
      case 1 -> "round " + seed + " of " + Long.toHexString(seed);
      default -> {
        final long[] array = new long[arrayLength(seed)];
        for (int i = 0; i < array.length; i++) {
          if (array[i] != 0) {
            throw new IllegalStateException("a new array is not zero at " + i + " of " + array.length);
          }
          array[i] = seed + i;
        }
        yield array;
      }
    };
  }

  private static long work(int thread, int rounds) {
    final Object[] kept = new Object[KEPT];
    long seed = next(thread + 1), sum = 0;
    for (int round = 0; round < rounds; round++) {
      for (int kind = 0; kind < 3; kind++) {
        seed = next(seed);
        final int place = (int) (seed >>> 33) & KEPT - 1;
        sum = 31 * sum + check(kept[place]);
        kept[place] = make(kind, seed);
      }
      if (round % 64 == 0) {
        Thread.yield();
      }
    }
    for (Object o : kept) {
      sum = 31 * sum + check(o);
    }
    return sum;
  }

  public static void main(String[] arguments) throws InterruptedException {
    final int rounds = Integer.parseInt(arguments[1]);
    final long[] sums = new long[Integer.parseInt(arguments[0])];
    final Thread[] threads = new Thread[sums.length];
    for (int i = 0; i < sums.length; i++) {
      final int number = i;
      threads[i] = new Thread(() -> sums[number] = work(number, rounds));
      threads[i].start();
    }
    for (Thread thread : threads) {
      thread.join();
    }
    if (Arrays.stream(sums).anyMatch(sum -> sum == 0)) {
      throw new IllegalStateException("a thread has failed");
    }
    System.out.println(sums.length + " threads, " + rounds + " rounds: " + Long.toHexString(Arrays.hashCode(sums)));
  }
}
