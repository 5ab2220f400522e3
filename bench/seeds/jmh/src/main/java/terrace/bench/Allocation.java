// SPDX-License-Identifier: MIT OR Apache-2.0
package terrace.bench;

import java.util.concurrent.TimeUnit;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;

/**
 * One object per call. Threads, heap, collector and whether there are TLABs are said on the command line.
 *
 * The sizes hold with compressed class pointers: a header of 12 bytes. JMH's gc profiler tells what they are in fact
 * (gc.alloc.rate.norm), and the report shows it.
 */
@BenchmarkMode(Mode.Throughput)
@OutputTimeUnit(TimeUnit.SECONDS)
public class Allocation {
  @Benchmark
  public Object bytes16() {
    return new Object();
  }

  @Benchmark
  public Object bytes48() {
    return new Small();
  }

  @Benchmark
  public Object bytes144() {
    return new Large();
  }

  static class Small {
    int i;
    long a, b, c, d;
  }

  static class Large {
    int i;
    long a, b, c, d, e, f, g, h;
    long j, k, l, m, n, o, p, q;
  }
}
