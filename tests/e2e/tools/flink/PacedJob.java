import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.serialization.SimpleStringSchema;
import org.apache.flink.connector.kafka.source.KafkaSource;
import org.apache.flink.connector.kafka.source.enumerator.initializer.OffsetsInitializer;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.sink.v2.DiscardingSink;

/** Reads a topic and works for a fixed time on each record: PacedJob BOOTSTRAP_SERVERS NAME MICROSECONDS. */
public class PacedJob {
  public static void main(String[] arguments) throws Exception {
    String name = arguments[1];
    long nanoseconds = 1000L * Long.parseLong(arguments[2]);
    KafkaSource<String> source = KafkaSource.<String>builder()
        .setBootstrapServers(arguments[0]).setTopics(name).setGroupId(name)
        .setStartingOffsets(OffsetsInitializer.earliest()).setValueOnlyDeserializer(new SimpleStringSchema())
        .setProperty("max.poll.records", "50").build();
    StreamExecutionEnvironment environment = StreamExecutionEnvironment.getExecutionEnvironment();
    environment.fromSource(source, WatermarkStrategy.noWatermarks(), name)
        .map(value -> work(value, nanoseconds)).returns(String.class).name("work").startNewChain()
        .sinkTo(new DiscardingSink<>());
    environment.execute(name);
  }

  // Sleeps: busy for Flink, without a load on the machine.
  private static String work(String value, long nanoseconds) throws InterruptedException {
    Thread.sleep(nanoseconds / 1_000_000, (int) (nanoseconds % 1_000_000));
    return value;
  }
}
