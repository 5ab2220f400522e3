// SPDX-License-Identifier: MIT OR Apache-2.0
// Holds 80 MiB by one method, for tests of `terrace profile`: often enough that it is compiled.
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;

class Orders {
  static final List<ByteBuffer> kept = new ArrayList<>();

  static void makeOrder() {
    kept.add(ByteBuffer.allocateDirect(4 << 10));
  }

  public static void main(String[] arguments) throws Exception {
    for (int i = 0; i < 20 << 10; ++i) makeOrder();
    System.out.println("ready");
    System.in.read();
  }
}
