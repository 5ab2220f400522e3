// SPDX-License-Identifier: MIT OR Apache-2.0
import java.io.IOException;
import java.io.OutputStream;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.zip.ZipEntry;
import java.util.zip.ZipFile;
import javax.tools.FileObject;
import javax.tools.ForwardingJavaFileManager;
import javax.tools.JavaCompiler;
import javax.tools.JavaFileManager;
import javax.tools.JavaFileObject;
import javax.tools.SimpleJavaFileObject;
import javax.tools.ToolProvider;

/**
 * The JDK's own compiler, in this process: threads compile the files of a source archive, a group at a time, against the classes of all of
 * them, and throw the result away.
 *
 *     java Compile prepare ARCHIVE CLASSES              writes the classes of the whole archive, once
 *     java Compile ARCHIVE CLASSES THREADS WARM GROUPS  compiles WARM groups to warm up, then GROUPS; an operation is a line of source
 *
 * The same groups are compiled in each run, whatever their number of threads: what is compared is the time of the same work.
 */
public final class Compile {
  private static final int GROUP = 12; // files
  private static final List<String> OPTIONS = List.of("-nowarn", "-proc:none", "-XDignore.symbol.file", "-implicit:none");
  private static final JavaCompiler COMPILER = ToolProvider.getSystemJavaCompiler();

  private static final class Source extends SimpleJavaFileObject {
    final String text;

    Source(String path, String text) {
      super(URI.create("archive:///" + path), Kind.SOURCE);
      this.text = text;
    }

    @Override
    public CharSequence getCharContent(boolean ignoreEncodingErrors) {
      return text;
    }
  }

  /** Files of classes come from the disk, and go nowhere. */
  private static final class Discarding extends ForwardingJavaFileManager<JavaFileManager> {
    Discarding(JavaFileManager files) {
      super(files);
    }

    @Override
    public JavaFileObject getJavaFileForOutput(Location location, String name, JavaFileObject.Kind kind, FileObject sibling) {
      return new SimpleJavaFileObject(URI.create("nowhere:///" + name.replace('.', '/') + kind.extension), kind) {
        @Override
        public OutputStream openOutputStream() {
          return OutputStream.nullOutputStream();
        }
      };
    }
  }

  private static List<Source> read(String archive) throws IOException {
    final List<Source> sources = new ArrayList<>();
    try (ZipFile zip = new ZipFile(archive)) {
      for (ZipEntry entry : zip.stream().sorted((a, b) -> a.getName().compareTo(b.getName())).toList()) {
        final String name = entry.getName();
        if (name.endsWith(".java") && !name.endsWith("-info.java")) {
          sources.add(new Source(name, new String(zip.getInputStream(entry).readAllBytes(), StandardCharsets.UTF_8)));
        }
      }
    }
    return sources;
  }

  private static void compile(List<Source> sources, JavaFileManager files, List<String> more) {
    final List<String> options = new ArrayList<>(OPTIONS);
    options.addAll(more);
    final StringBuilder said = new StringBuilder();
    final JavaCompiler.CompilationTask task =
        COMPILER.getTask(null, files, d -> said.append(d).append('\n'), options, null, sources);
    if (!task.call()) {
      throw new IllegalStateException(said.toString());
    }
  }

  private static void prepare(String archive, String classes) throws IOException {
    Files.createDirectories(Path.of(classes));
    try (JavaFileManager files = COMPILER.getStandardFileManager(null, null, null)) {
      compile(read(archive), files, List.of("-d", classes));
    }
  }

  private static List<List<Source>> groups(List<Source> sources) {
    final List<List<Source>> groups = new ArrayList<>();
    for (int i = 0; i < sources.size(); i += GROUP) {
      groups.add(sources.subList(i, Math.min(i + GROUP, sources.size())));
    }
    return groups;
  }

  private static long lines(List<List<Source>> groups, int first, int count) {
    long lines = 0;
    for (int i = first; i < first + count; i++) {
      lines += groups.get(i % groups.size()).stream().mapToLong(s -> s.text.lines().count()).sum();
    }
    return lines;
  }

  private static void compileGroups(List<List<Source>> groups, int first, int count, int threads, String classes) throws Exception {
    final AtomicInteger next = new AtomicInteger(first);
    final Throwable[] failure = new Throwable[1];
    final Thread[] workers = new Thread[threads];
    for (int t = 0; t < threads; t++) {
      workers[t] = new Thread(() -> {
        try {
          for (int i = next.getAndIncrement(); i < first + count; i = next.getAndIncrement()) {
            try (JavaFileManager files = new Discarding(COMPILER.getStandardFileManager(null, null, null))) {
              compile(groups.get(i % groups.size()), files, List.of("-cp", classes));
            }
          }
        } catch (Throwable e) {
          failure[0] = e;
        }
      });
      workers[t].start();
    }
    for (Thread worker : workers) {
      worker.join();
    }
    if (failure[0] != null) {
      throw new IllegalStateException("a thread failed", failure[0]);
    }
  }

  public static void main(String[] words) throws Exception {
    if (words[0].equals("prepare")) {
      prepare(words[1], words[2]);
      return;
    }
    final List<List<Source>> groups = groups(read(words[0]));
    final int threads = Integer.parseInt(words[2]), warm = Integer.parseInt(words[3]), count = Integer.parseInt(words[4]);
    compileGroups(groups, 0, warm, threads, words[1]);
    final Window window = new Window();
    window.open();
    compileGroups(groups, warm, count, threads, words[1]);
    window.close();
    Window.print(window.values(lines(groups, warm, count)));
  }
}
