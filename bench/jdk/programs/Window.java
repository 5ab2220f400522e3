// SPDX-License-Identifier: MIT OR Apache-2.0
import com.sun.management.OperatingSystemMXBean;
import java.lang.management.ManagementFactory;
import java.lang.management.RuntimeMXBean;
import java.util.LinkedHashMap;
import java.util.Locale;
import java.util.Map;
import java.util.stream.Collectors;

/**
 * The part of a run that counts, in elapsed time and in the processor time of the process, from which others at work take little. Its ends are in seconds since the JVM began, too, as the JVM's log counts them: so collections that were
 * logged meanwhile can be told from those of the warm-up.
 *
 * open() and close() allocate nothing: where threads wait for each other's collections, the one that measures must not wait with them.
 */
final class Window {
  private static final RuntimeMXBean RUNTIME = ManagementFactory.getRuntimeMXBean();
  private static final OperatingSystemMXBean SYSTEM = (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();

  private long start, end, firstUptime, lastUptime, firstProcessor, lastProcessor;

  void open() {
    firstUptime = RUNTIME.getUptime();
    firstProcessor = SYSTEM.getProcessCpuTime();
    start = System.nanoTime();
  }

  void close() {
    end = System.nanoTime();
    lastProcessor = SYSTEM.getProcessCpuTime();
    lastUptime = RUNTIME.getUptime();
  }

  /** What to print: operations is what was done in the window, in the program's own unit. */
  Map<String, Double> values(double operations) {
    final double seconds = (end - start) / 1e9;
    final Map<String, Double> values = new LinkedHashMap<>();
    values.put("operations", operations);
    values.put("window_seconds", seconds);
    values.put("rate", operations / seconds);
    values.put("processor_rate", operations / ((lastProcessor - firstProcessor) / 1e9));
    values.put("from_uptime", firstUptime / 1e3);
    values.put("to_uptime", lastUptime / 1e3);
    return values;
  }

  /** One line of JSON, the last that a program prints. */
  static void print(Map<String, Double> values) {
    System.out.println(values.entrySet().stream().map(e -> String.format(Locale.ROOT, "\"%s\": %.6f", e.getKey(), e.getValue()))
                           .collect(Collectors.joining(", ", "{", "}")));
  }
}
