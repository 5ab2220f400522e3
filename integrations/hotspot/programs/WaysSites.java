// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * The allocation sites of Ways.java, and the steps of a program: each calls one site, once or so often that it is compiled, with a few classes. Sites that were
 * compiled for a few classes so come to classes that nobody has used. Each program loads a copy of this class.
 */
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.ObjectInputStream;
import java.io.ObjectStreamClass;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.lang.reflect.Array;
import java.lang.reflect.Constructor;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.function.IntSupplier;

public final class WaysSites {
  record Pair(int number, Object other) {}

  enum Colour {
    RED, GREEN;
  }

  private static final String[] WAYS = {"new", "new", "unsafe", "unsafe", "reflection", "Class.newInstance", "handle", "handle", "clone",
    "deserialization", "hidden", "array", "grid", "primitives", "strings", "boxes", "closures", "records"};
  private static final int OFTEN = 300; // from here on a step is to be compiled, and takes few classes
  private static final sun.misc.Unsafe UNSAFE = unsafe();

  private static sun.misc.Unsafe unsafe() {
    try {
      final Field field = sun.misc.Unsafe.class.getDeclaredField("theUnsafe");
      field.setAccessible(true);
      return (sun.misc.Unsafe) field.get(null);
    } catch (ReflectiveOperationException e) {
      throw new IllegalStateException(e);
    }
  }

  static Object instance(Class<?> type) throws InstantiationException {
    return UNSAFE.allocateInstance(type);
  }

  static Object reflected(Constructor<?> constructor) throws ReflectiveOperationException {
    return constructor.newInstance();
  }

  @SuppressWarnings("deprecation")
  static Object ofClass(Class<?> type) throws ReflectiveOperationException {
    return type.newInstance();
  }

  static Object handle(MethodHandle constructor) throws Throwable {
    return (Object) constructor.invokeExact();
  }

  static int array(Class<?> type, int length) {
    final Object[] array = (Object[]) Array.newInstance(type, length);
    int sum = array.length;
    for (Object o : array) {
      sum += o == null ? 1 : 1000;
    }
    return sum + array.getClass().getName().length() + Arrays.copyOf(array, length + 3).length + array.clone().length;
  }

  static int grid(Class<?> type, int rows, int columns) {
    final Object[][] grid = (Object[][]) Array.newInstance(type, rows, columns);
    return grid.length * 31 + (rows == 0 ? 7 : grid[rows - 1].length) + new int[rows][columns][2].length + new byte[columns][].length;
  }

  static int primitives(int n) {
    final byte[] bytes = new byte[n];
    final long[] longs = new long[n / 3];
    final char[] chars = new char[n / 2];
    final double[] doubles = new double[n % 7];
    final boolean[] booleans = new boolean[n];
    int sum = Arrays.hashCode(bytes) + Arrays.hashCode(longs) + Arrays.hashCode(chars) + Arrays.hashCode(doubles) + Arrays.hashCode(booleans);
    Arrays.fill(bytes, (byte) n);
    sum += Arrays.hashCode(Arrays.copyOfRange(bytes, n / 4, n + 1)) + Arrays.hashCode(longs.clone()) + Arrays.hashCode(bytes.clone());
    return sum;
  }

  static int strings(int n) {
    final String text = "n" + n + (n % 2 == 0) + 'c' + (long) n * n + (n % 3 == 0 ? null : "x");
    return text.hashCode() + new StringBuilder(text).append(n).reverse().toString().hashCode() + text.substring(n % 3).toUpperCase().hashCode();
  }

  static int boxes(int n) {
    final Integer i = n + 1000;
    final Long l = (long) n << 20;
    final Double d = n / 3.0;
    final Object[] all = {i, l, d, (char) n, (short) n, n % 2 == 0};
    return Arrays.hashCode(all);
  }

  static int closures(int n) {
    final int[] cell = {n};
    final IntSupplier one = () -> cell[0]++ + n, two = new IntSupplier() {
      @Override
      public int getAsInt() {
        return cell[0] + one.getAsInt();
      }
    };
    return two.getAsInt() + one.getAsInt() + List.of(n, n + 1).stream().mapToInt(x -> x * n).sum();
  }

  static int records(int n) {
    final Pair pair = new Pair(n, new Pair(n + 1, "o"));
    return pair.hashCode() + Colour.values().length + new ArrayList<>(List.of(pair, n)).hashCode() + thrown(n);
  }

  private static int thrown(int n) {
    try {
      return Integer.parseInt(n % 4 == 0 ? "no number" : "" + n);
    } catch (NumberFormatException e) {
      return e.getMessage().length() + (e.getStackTrace().length > 0 ? 1 : 0);
    }
  }

  /** What a site needs of a class, without initialising it. */
  private static final class Subject {
    final Class<?> type;
    final Constructor<?> constructor;
    final MethodHandle handle;
    final byte[] code, serialized;
    Ways.Made original;

    Subject(String name, byte[] code, byte[] serialized) throws ReflectiveOperationException {
      type = Class.forName(name, false, WaysSites.class.getClassLoader());
      constructor = type.getConstructor();
      final boolean isAbstract = java.lang.reflect.Modifier.isAbstract(type.getModifiers());
      handle = isAbstract ? null : MethodHandles.lookup().findConstructor(type, MethodType.methodType(void.class)).asType(MethodType.methodType(Object.class));
      this.code = code;
      this.serialized = serialized;
    }

    synchronized Ways.Made original() throws ReflectiveOperationException {
      return original == null ? original = (Ways.Made) constructor.newInstance() : original;
    }
  }

  private static Object deserialized(byte[] bytes) throws IOException, ClassNotFoundException {
    try (var in = new ObjectInputStream(new ByteArrayInputStream(bytes)) {
      @Override
      protected Class<?> resolveClass(ObjectStreamClass type) throws ClassNotFoundException {
        return Class.forName(type.getName(), false, WaysSites.class.getClassLoader());
      }
    }) {
      return in.readObject();
    }
  }

  private static Object hidden(byte[] code, boolean initialize) throws ReflectiveOperationException {
    return instance(MethodHandles.lookup().defineHiddenClass(code, initialize).lookupClass());
  }

  private final Subject[] subjects;
  private final Method[] drivers;

  private WaysSites(Map<String, byte[]> classes, Map<String, byte[]> objects) throws ReflectiveOperationException {
    subjects = new Subject[(int) classes.keySet().stream().filter(name -> name.startsWith("Made")).count()];
    for (int i = 0; i < subjects.length; i++) {
      subjects[i] = new Subject("Made" + i, classes.get("Made" + i), objects.get("Made" + i));
    }
    drivers = new Method[classes.size() - subjects.length];
    for (int i = 0; i < drivers.length; i++) {
      drivers[i] = Class.forName("Driver" + i, false, getClass().getClassLoader()).getMethod("run", int.class);
    }
  }

  private int driven(int number, int n) throws Throwable {
    try {
      return (int) drivers[number % drivers.length].invoke(null, n);
    } catch (java.lang.reflect.InvocationTargetException e) {
      throw e.getCause();
    }
  }

  /** Asks before look(), whose code would have the class initialised by the way, whether it is. */
  private static int look(Object object, int number) {
    return (Ways.Told.has[number] ? 0 : 1_000_000) + ((Ways.Made) object).look();
  }

  private int once(String way, int number, int n) throws Throwable {
    final Subject subject = subjects[number];
    return switch (way) {
      case "new" -> driven(number, n);
      case "unsafe" -> look(instance(subject.type), number);
      case "reflection" -> look(reflected(subject.constructor), number);
      case "Class.newInstance" -> look(ofClass(subject.type), number);
      case "handle" -> subject.handle == null ? 5 : look(handle(subject.handle), number);
      case "clone" -> look(subject.original().copy(), number);
      case "deserialization" -> subject.serialized == null ? 6 : look(deserialized(subject.serialized), number);
      case "hidden" -> look(hidden(subject.code, n % 2 == 0), number);
      case "array" -> array(subject.type, n % 40);
      case "grid" -> grid(subject.type, n % 5, n % 11);
      case "primitives" -> primitives(n % 3000);
      case "strings" -> strings(n);
      case "boxes" -> boxes(n);
      case "closures" -> closures(n);
      default -> records(n);
    };
  }

  /** Exceptions are results; which of several threads meets an initialiser that throws first is not. */
  private int loop(String way, int[] numbers, int times) {
    int sum = 0;
    for (int i = 0; i < times; i++) {
      for (int number : numbers) {
        int found;
        try {
          found = once(way, number, i);
        } catch (LinkageError e) {
          found = 7;
        } catch (Throwable e) {
          found = e.getClass().getName().hashCode();
        }
        sum = 31 * sum + found;
      }
    }
    return sum;
  }

  private int loopOfThreads(int count, String way, int[] numbers, int times) throws InterruptedException {
    final int[] sums = new int[count];
    final Thread[] threads = new Thread[count];
    for (int i = 0; i < count; i++) {
      final int thread = i;
      threads[i] = (i % 2 == 0 ? Thread.ofPlatform() : Thread.ofVirtual()).start(() -> sums[thread] = loop(way, numbers, times));
    }
    for (Thread thread : threads) {
      thread.join();
    }
    return Arrays.hashCode(sums);
  }

  private static int times(Random random, String way) {
    final int times = new int[] {1, 1, 4, OFTEN, 10 * OFTEN}[random.nextInt(5)];
    return List.of("hidden", "deserialization").contains(way) ? Math.min(times, OFTEN) : times;
  }

  public static String run(long seed, Map<String, byte[]> classes, Map<String, byte[]> objects, boolean steps)
      throws ReflectiveOperationException, InterruptedException {
    final WaysSites program = new WaysSites(classes, objects);
    final Random random = new Random(~seed);
    long sum = 0;
    for (int step = 0; step < 60; step++) {
      final String way = WAYS[random.nextInt(WAYS.length)];
      final int times = times(random, way);
      final int[] numbers = random.ints(1 + random.nextInt(3), 0, times < OFTEN ? program.subjects.length : 4).toArray();
      final int found = random.nextInt(8) == 0 && !way.equals("hidden") ? program.loopOfThreads(4, way, numbers, times) : program.loop(way, numbers, times);
      sum = 31 * (31 * sum + found) + Arrays.hashCode(Ways.Told.order);
      if (steps) {
        System.out.println(step + ": " + way + " of " + Arrays.toString(numbers) + " " + times + " times: " + found + ", initialized "
            + Ways.Told.order.length);
      }
    }
    return seed + ": " + Long.toHexString(sum) + ", " + Ways.Told.order.length + " initialisations";
  }
}
