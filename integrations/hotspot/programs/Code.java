// SPDX-License-Identifier: MIT OR Apache-2.0
/** Methods that do nothing but create an object; `java Code` calls them until they are compiled. */
public final class Code {
  private static final class Small {
    long a, b;
  }

  private static Object kept;

  static Object makeInstance() {
    return new Small();
  }

  static Object makeNumbers(int length) {
    return new int[length];
  }

  static Object makeReferences(int length) {
    return new Object[length];
  }

  static Object makeFixed() {
    return new byte[100];
  }

  static Object makeClone(int[] numbers) {
    return numbers.clone();
  }

  public static void main(String[] words) {
    final int[] numbers = new int[20];
    for (int i = 0; i < 100_000; i++) {
      kept = makeInstance();
      kept = makeNumbers(i & 15);
      kept = makeReferences(i & 15);
      kept = makeFixed();
      kept = makeClone(numbers);
    }
  }
}
