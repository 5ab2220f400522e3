// SPDX-License-Identifier: MIT OR Apache-2.0
import java.io.BufferedReader;
import java.io.DataInputStream;
import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.net.SocketException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.StringJoiner;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.LongAdder;

/**
 * A chat server and its clients, two processes with a thread for each of the users in each. A user says something, waits until it comes back, and
 * pauses; everybody in the room gets it. Most threads sleep most of the time.
 *
 *     java Chat THREADS PAUSE_MS WARM MEASURED JAVA...   the clients; JAVA... with "Chat server" behind it starts the server
 *     java Chat server                                   prints its port, then serves; a line on its input opens the window, the next closes it
 *
 * An operation is a message that a user got. The server's numbers have "server." before their names.
 */
public final class Chat {
  private static final int ROOM = 20; // users

  private static byte[] encode(String text) {
    return text.getBytes(StandardCharsets.UTF_8);
  }

  /** Length and text; the array, the string, and what is made of it are garbage soon after. */
  private static String receive(DataInputStream from) throws IOException {
    final byte[] bytes = new byte[from.readUnsignedShort()];
    from.readFully(bytes);
    return new String(bytes, StandardCharsets.UTF_8);
  }

  private static void send(OutputStream to, byte[] bytes) throws IOException {
    final byte[] framed = new byte[bytes.length + 2];
    framed[0] = (byte) (bytes.length >> 8);
    framed[1] = (byte) bytes.length;
    System.arraycopy(bytes, 0, framed, 2, bytes.length);
    to.write(framed); // one call of the system
  }

  private static void opened(Socket socket) throws SocketException {
    socket.setTcpNoDelay(true);
  }

  private static final class Server {
    private final Map<Integer, List<OutputStream>> rooms = new LinkedHashMap<>(); // guarded by itself
    private final LongAdder messages = new LongAdder();

    private List<OutputStream> room(int number) {
      synchronized (rooms) {
        return rooms.computeIfAbsent(number, n -> new CopyOnWriteArrayList<>());
      }
    }

    private static String format(String said) {
      final String[] parts = said.split(":", 3);
      final StringJoiner line = new StringJoiner(" ", "[", "]");
      for (String word : parts[2].split(" ")) {
        line.add(word);
      }
      return parts[0] + ":" + parts[1] + ":" + line;
    }

    private void serve(Socket socket) {
      try (socket) {
        opened(socket);
        final DataInputStream in = new DataInputStream(socket.getInputStream());
        final OutputStream out = socket.getOutputStream();
        final List<OutputStream> room = room(Integer.parseInt(receive(in)));
        room.add(out);
        send(out, encode("welcome"));
        while (true) {
          final byte[] bytes = encode(format(receive(in)));
          for (OutputStream user : room) {
            synchronized (user) {
              send(user, bytes);
            }
          }
          messages.add(room.size());
        }
      } catch (IOException e) {
        // the user is gone
      }
    }

    void run() throws IOException {
      final ServerSocket listening = new ServerSocket(0, 1024, InetAddress.getLoopbackAddress());
      System.out.println(listening.getLocalPort());
      final Thread acceptor = new Thread(() -> {
        try {
          while (true) {
            final Socket socket = listening.accept();
            final Thread thread = new Thread(() -> serve(socket));
            thread.setDaemon(true);
            thread.start();
          }
        } catch (IOException e) {
          // the end
        }
      });
      acceptor.setDaemon(true);
      acceptor.start();
      final InputStream orders = System.in;
      final Window window = new Window();
      orders.read();
      window.open();
      final long before = messages.sum();
      orders.read();
      window.close();
      Window.print(window.values(messages.sum() - before));
    }
  }

  private static final class User implements Runnable {
    private final int number, port, pause;
    private final CountDownLatch ready;
    final Thread thread = new Thread(this);
    volatile long got; // written by its thread alone
    volatile boolean stopped;
    volatile IOException failure;
    Socket socket;

    User(int number, int port, int pause, CountDownLatch ready) {
      this.number = number;
      this.port = port;
      this.pause = pause;
      this.ready = ready;
    }

    private void talk() throws IOException, InterruptedException {
      socket = new Socket(InetAddress.getLoopbackAddress(), port);
      opened(socket);
      final DataInputStream in = new DataInputStream(socket.getInputStream());
      final OutputStream out = socket.getOutputStream();
      send(out, encode(Integer.toString(number / ROOM)));
      receive(in);
      ready.countDown();
      ready.await();
      for (int said = 0; !stopped; said++) {
        final String mine = number + ":" + said + ":";
        send(out, encode(mine + "hello from user " + number + " of room " + number / ROOM + ", this is what I say: number " + said));
        for (String heard = receive(in); !heard.startsWith(mine); heard = receive(in)) {
          got++;
        }
        got++;
        if (pause > 0) {
          Thread.sleep(pause);
        }
      }
    }

    @Override
    public void run() {
      try {
        talk();
      } catch (IOException e) {
        failure = stopped ? null : e;
        ready.countDown();
      } catch (InterruptedException e) {
        Thread.currentThread().interrupt();
      }
    }
  }

  private static long sum(User[] users) {
    long sum = 0;
    for (User user : users) {
      sum += user.got;
    }
    return sum;
  }

  private static void order(Process server) throws IOException {
    server.getOutputStream().write('\n');
    server.getOutputStream().flush();
  }

  private static void putServer(Map<String, Double> values, String json) {
    for (String pair : json.substring(1, json.length() - 1).split(", ")) {
      final String[] parts = pair.split(": ");
      values.put("server." + parts[0].replace("\"", ""), Double.valueOf(parts[1]));
    }
  }

  private static void clients(String[] words) throws IOException, InterruptedException {
    final int count = Integer.parseInt(words[0]), pause = Integer.parseInt(words[1]);
    final List<String> command = new ArrayList<>(Arrays.asList(words).subList(4, words.length));
    command.addAll(List.of("Chat", "server"));
    final Process server = new ProcessBuilder(command).redirectError(ProcessBuilder.Redirect.INHERIT).start();
    try (BufferedReader said = server.inputReader()) {
      final String port = said.readLine();
      if (port == null) {
        throw new EOFException("the server ended with " + server.waitFor());
      }
      final CountDownLatch ready = new CountDownLatch(count);
      final User[] users = new User[count];
      for (int i = 0; i < count; i++) {
        users[i] = new User(i, Integer.parseInt(port), pause, ready);
        users[i].thread.setDaemon(true);
        users[i].thread.start();
      }
      ready.await();
      Thread.sleep((long) (1e3 * Double.parseDouble(words[2])));
      final long milliseconds = (long) (1e3 * Double.parseDouble(words[3]));
      final Window window = new Window();
      order(server);
      window.open();
      final long before = sum(users);
      Thread.sleep(milliseconds);
      window.close();
      final long after = sum(users);
      order(server);
      for (User user : users) {
        user.stopped = true;
      }
      for (User user : users) {
        if (user.failure != null) {
          throw new IllegalStateException("a user failed", user.failure);
        }
      }
      final Map<String, Double> values = window.values(after - before);
      putServer(values, said.readLine());
      server.waitFor();
      Window.print(values);
    } finally {
      server.destroyForcibly();
    }
  }

  public static void main(String[] words) throws IOException, InterruptedException {
    if (words[0].equals("server")) {
      new Server().run();
    } else {
      clients(words);
    }
    System.exit(0); // sleeping users are not waited for
  }
}
