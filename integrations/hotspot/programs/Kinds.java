// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Objects of every kind that compiled code and the interpreter allocate in ways of their own: instances of many sizes, arrays of
 * each element type and length around the limits, copies that are not set to zero before they are filled, classes that are being
 * initialised, lengths that are wrong. All of them are looked at, so all JVMs must print the same.
 *
 *     java Kinds.java THREADS ROUNDS
 */
import java.lang.management.ManagementFactory;
import java.util.Arrays;

public final class Kinds {
  private static final class Empty {}

  private static final class Small {
    int number;
    Object other;
  }

  private static final class Large {
    long a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t;
    Object u, v;
    byte w;
  }

  /** Allocated by threads that find its class uninitialised, or being initialised by another. */
  private static final class Slow {
    static final Slow FIRST = new Slow(1);
    static final int[] TABLE = table();
    final int number;

    Slow(int number) {
      this.number = number;
    }

    private static int[] table() {
      final int[] table = new int[10];
      for (int i = 0; i < table.length; i++) {
        table[i] = new Slow(i).number + FIRST.number;
      }
      return table;
    }
  }

  private static final int[] LENGTHS = {0, 1, 2, 3, 7, 8, 15, 16, 17, 31, 32, 33, 100, 255, 256, 1000, 4095, 20_000, 70_000};

  private static void must(boolean condition, String what) {
    if (!condition) {
      throw new IllegalStateException(what);
    }
  }

  private static long instances(int round) {
    final Empty empty = new Empty();
    final Small small = new Small();
    final Large large = new Large();
    must(small.number == 0 && small.other == null, "a new object is not zero");
    must((large.a | large.h | large.p | large.t | large.w) == 0 && large.u == null && large.v == null, "a new large object");
    small.number = round;
    small.other = empty;
    large.t = small.number;
    large.v = small;
    return large.t + ((Small) large.v).number + (small.other.getClass() == Empty.class ? 1 : 0) + new Slow(round).number;
  }

  private static long bytes(int length) {
    final byte[] array = new byte[length];
    for (byte b : array) {
      must(b == 0, "a new byte[]");
    }
    Arrays.fill(array, (byte) length);
    final byte[] copy = array.clone();
    final byte[] longer = Arrays.copyOf(array, length + 5);
    must(Arrays.equals(array, copy) && longer[length + 4] == 0, "a copy of a byte[]");
    return Arrays.hashCode(copy) + longer.length;
  }

  private static long characters(int length) {
    final char[] array = new char[length];
    for (char c : array) {
      must(c == 0, "a new char[]");
    }
    Arrays.fill(array, 'x');
    final String text = new String(array) + length;
    return text.hashCode() + text.substring(length / 2).length();
  }

  private static long numbers(int length) {
    final int[] ints = new int[length];
    final long[] longs = new long[length];
    final double[] doubles = new double[length];
    final short[] shorts = new short[length];
    final boolean[] booleans = new boolean[length];
    long sum = 0;
    for (int i = 0; i < length; i++) {
      must(ints[i] == 0 && longs[i] == 0 && doubles[i] == 0 && shorts[i] == 0 && !booleans[i], "a new array");
      ints[i] = i;
      longs[i] = -i;
      shorts[i] = (short) i;
    }
    sum += Arrays.hashCode(Arrays.copyOfRange(ints, length / 3, length)) + Arrays.hashCode(longs.clone());
    return sum + Arrays.hashCode(shorts);
  }

  private static long objects(int length) {
    final Object[] array = new Object[length];
    final String[][] rows = new String[Math.min(length, 50)][3];
    for (Object o : array) {
      must(o == null, "a new Object[]");
    }
    Arrays.fill(array, "o");
    final Object[] copy = Arrays.copyOf(array, length + 1);
    must(copy[length] == null, "a longer copy");
    return Arrays.hashCode(copy) + Arrays.deepHashCode(rows);
  }

  private static int minusOne = -1;

  private static long wrongLengths() {
    long caught = 0;
    try {
      must(new int[minusOne] == null, "a negative length");
    } catch (NegativeArraySizeException e) {
      caught++;
    }
    try {
      must(new long[Integer.MAX_VALUE + (minusOne + 1)] == null, "more than the heap has");
    } catch (OutOfMemoryError e) {
      caught++;
    }
    return caught;
  }

  private static long work(int rounds) {
    long sum = 0;
    for (int round = 0; round < rounds; round++) {
      sum = 31 * sum + instances(round);
      final int length = LENGTHS[round % LENGTHS.length];
      sum = 31 * sum + bytes(length) + characters(length) + numbers(length) + objects(length);
      if (round % 1000 == 0) {
        sum += wrongLengths();
      }
    }
    return sum;
  }

  /** Whether a thread's own count of bytes has what it has allocated at least. */
  private static boolean counts() {
    final var bean = (com.sun.management.ThreadMXBean) ManagementFactory.getThreadMXBean();
    final long before = bean.getCurrentThreadAllocatedBytes();
    final Object[] kept = new Object[100];
    for (int i = 0; i < 200_000; i++) {
      kept[i % kept.length] = new long[10];
    }
    return bean.getCurrentThreadAllocatedBytes() - before >= 200_000 * 88L && kept[99] != null;
  }

  public static void main(String[] arguments) throws InterruptedException {
    final int rounds = Integer.parseInt(arguments[1]);
    final long[] sums = new long[Integer.parseInt(arguments[0])];
    final Thread[] threads = new Thread[sums.length];
    for (int i = 0; i < sums.length; i++) {
      final int number = i;
      threads[i] = new Thread(() -> sums[number] = work(rounds));
      threads[i].start();
    }
    for (Thread thread : threads) {
      thread.join();
    }
    System.out.println(Long.toHexString(Arrays.hashCode(sums)) + " " + Slow.TABLE[9] + " " + counts());
  }
}
