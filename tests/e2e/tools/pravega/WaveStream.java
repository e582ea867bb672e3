import io.pravega.client.ClientConfig;
import io.pravega.client.EventStreamClientFactory;
import io.pravega.client.admin.ReaderGroupManager;
import io.pravega.client.stream.EventRead;
import io.pravega.client.stream.EventStreamReader;
import io.pravega.client.stream.EventStreamWriter;
import io.pravega.client.stream.EventWriterConfig;
import io.pravega.client.stream.ReaderConfig;
import io.pravega.client.stream.ReaderGroup;
import io.pravega.client.stream.ReaderGroupConfig;
import io.pravega.client.stream.impl.UTF8StringSerializer;
import java.net.URI;
import java.util.concurrent.locks.LockSupport;

/** Writes a stream, or reads it as one of a group: WaveStream write|read CONTROLLER SCOPE STREAM READER. */
public class WaveStream {
  private static final String EVENT = "x".repeat(250);
  private static volatile boolean stopping;

  public static void main(String[] arguments) throws Exception {
    ClientConfig client = ClientConfig.builder().controllerURI(URI.create(arguments[1])).build();
    String scope = arguments[2], stream = arguments[3];
    try (ReaderGroupManager groups = ReaderGroupManager.withScope(scope, client);
        EventStreamClientFactory factory = EventStreamClientFactory.withScope(scope, client)) {
      String group = stream + "-readers";
      groups.createReaderGroup(group, ReaderGroupConfig.builder().stream(scope + "/" + stream).build());
      if (arguments[0].equals("read")) {
        read(factory, group, arguments[4]);
      } else {
        write(factory, stream, groups.getReaderGroup(group));
      }
    }
  }

  // Each line on the input is a new rate in events/s; the answer is the number of online readers.
  private static void write(EventStreamClientFactory factory, String stream, ReaderGroup group) throws Exception {
    StringBuilder line = new StringBuilder();
    double rate = 0, due = 0;
    long last = System.nanoTime(), count = 0;
    try (EventStreamWriter<String> writer =
        factory.createEventWriter(stream, new UTF8StringSerializer(), EventWriterConfig.builder().build())) {
      while (true) {
        while (System.in.available() > 0) {
          int read = System.in.read();
          if (read == '\n') {
            rate = Double.parseDouble(line.toString());
            line.setLength(0);
            System.out.println("readers " + group.getOnlineReaders().size());
          } else {
            line.append((char) read);
          }
        }
        long now = System.nanoTime();
        due = Math.min(due + rate * (now - last) / 1e9, rate);  // after a stall, at most one second is written late
        last = now;
        for (; due >= 1; due--) {
          writer.writeEvent(Long.toString(count++), EVENT);
        }
        LockSupport.parkNanos(50_000_000);
      }
    }
  }

  // Leaves the group when it is told to stop, so that the others take its segments at once.
  private static void read(EventStreamClientFactory factory, String group, String id) throws Exception {
    Thread main = Thread.currentThread();
    Runtime.getRuntime().addShutdownHook(new Thread(() -> {
      stopping = true;
      try {
        main.join(5000);
      } catch (InterruptedException stop) {
        main.interrupt();
      }
    }));
    try (EventStreamReader<String> reader =
        factory.createReader(id, group, new UTF8StringSerializer(), ReaderConfig.builder().build())) {
      while (!stopping) {
        EventRead<String> event = reader.readNextEvent(1000);
        if (event.isCheckpoint()) {
          System.out.println("checkpoint " + event.getCheckpointName());
        }
      }
    }
  }
}
