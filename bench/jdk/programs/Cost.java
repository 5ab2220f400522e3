// SPDX-License-Identifier: MIT OR Apache-2.0
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;

/**
 * What an object costs one thread, in the processor time of that thread: in a loop of compiled code that does nothing else but keep the last 64.
 * Others at work on the machine take elapsed time from it, which JMH would count, but no processor time.
 *
 *     java Cost 16|48|144|array WARM MEASURED      an operation is an object; `array` is a byte[32]
 */
public final class Cost {
  private static final int BATCH = 1_000_000;
  private static final Object[] KEPT = new Object[64];

  private static final class Smallest {
    int i;
  }

  static final class Small {
    int i;
    long a, b, c, d;
  }

  static final class Large {
    int i;
    long a, b, c, d, e, f, g, h;
    long j, k, l, m, n, o, p, q;
  }

  private static void allocate16() {
    final Object[] kept = KEPT;
    for (int i = 0; i < BATCH; i++) {
      kept[i & 63] = new Smallest();
    }
  }

  private static void allocate48() {
    final Object[] kept = KEPT;
    for (int i = 0; i < BATCH; i++) {
      kept[i & 63] = new Small();
    }
  }

  private static void allocate144() {
    final Object[] kept = KEPT;
    for (int i = 0; i < BATCH; i++) {
      kept[i & 63] = new Large();
    }
  }

  private static void allocateArrays() {
    final Object[] kept = KEPT;
    for (int i = 0; i < BATCH; i++) {
      kept[i & 63] = new byte[32];
    }
  }

  private static void allocate(String what) {
    switch (what) {
      case "16" -> allocate16();
      case "48" -> allocate48();
      case "144" -> allocate144();
      case "array" -> allocateArrays();
      default -> throw new IllegalArgumentException(what);
    }
  }

  public static void main(String[] words) {
    final ThreadMXBean bean = ManagementFactory.getThreadMXBean();
    final long warm = (long) (1e9 * Double.parseDouble(words[1])), measured = (long) (1e9 * Double.parseDouble(words[2]));
    while (bean.getCurrentThreadCpuTime() < warm) {
      allocate(words[0]);
    }
    final Window window = new Window();
    window.open();
    final long start = bean.getCurrentThreadCpuTime();
    long operations = 0, spent = 0;
    while (spent < measured) {
      allocate(words[0]);
      operations += BATCH;
      spent = bean.getCurrentThreadCpuTime() - start;
    }
    window.close();
    final var values = window.values(operations);
    values.put("rate", operations / (spent / 1e9)); // of the thread, not of the process
    Window.print(values);
  }
}
