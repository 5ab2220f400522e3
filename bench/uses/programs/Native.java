// SPDX-License-Identifier: MIT OR Apache-2.0
// Memory that a JVM takes outside of its heap: 16 threads pack and unpack with zlib and copy through direct buffers. Half of
// the inflaters and all buffers are left to the collector, as in many a program.
import java.nio.ByteBuffer;
import java.nio.file.*;
import java.util.Arrays;
import java.util.Random;
import java.util.concurrent.*;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.zip.*;

public class Native {
    static int task(int number) {
        Random chance = new Random(number);
        byte[] text = new byte[64 << 10 << chance.nextInt(4)];
        for (int i = 0; i < text.length; i++) text[i] = (byte) ("abcdefgh".charAt(chance.nextInt(8)));
        Deflater deflater = new Deflater(chance.nextInt(3) + 1);
        deflater.setInput(text);
        deflater.finish();
        ByteBuffer packed = ByteBuffer.allocateDirect(text.length + 1024);
        while (!deflater.finished()) deflater.deflate(packed);
        if (number % 2 == 0) deflater.end();
        packed.flip();
        Inflater inflater = new Inflater();
        inflater.setInput(packed);
        ByteBuffer back = ByteBuffer.allocateDirect(text.length);
        try {
            while (!inflater.finished() && back.hasRemaining()) inflater.inflate(back);
        } catch (DataFormatException e) {
            throw new IllegalStateException(e);
        }
        if (number % 2 == 0) inflater.end();
        return back.position() == text.length ? 1 : 0;
    }

    public static void main(String[] arguments) throws Exception {
        Runtime.getRuntime().addShutdownHook(new Thread(() -> Runtime.getRuntime().halt(0)));
        Files.createFile(Path.of("ready"));
        Path tasks = Path.of("tasks");
        while (!Files.exists(tasks)) Thread.sleep(20);
        int count = Integer.parseInt(Files.readString(tasks));
        ExecutorService pool = Executors.newFixedThreadPool(16);
        long[] nanoseconds = new long[count];
        AtomicInteger done = new AtomicInteger();
        CountDownLatch all = new CountDownLatch(count);
        for (int i = 0; i < count; i++) {
            int number = i;
            pool.execute(() -> {
                long began = System.nanoTime();
                try {
                    done.addAndGet(task(number));
                } finally {
                    nanoseconds[number] = System.nanoTime() - began;
                    all.countDown();
                }
            });
        }
        all.await();
        System.gc();  // what is left to it goes back to malloc
        Thread.sleep(200);
        Arrays.sort(nanoseconds);
        Files.writeString(Path.of("loaded"), done + " " + nanoseconds[count * 99 / 100] / 1e6);
        Thread.sleep(Long.MAX_VALUE);
    }
}
