import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewPartitionReassignment;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.consumer.SubscriptionPattern;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.RebalanceInProgressException;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.kstream.Materialized;

/** Clients of every kind in one process, told by lines of JSON what to do; each line is answered by one. */
public class Clients {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final Duration POLL = Duration.ofMillis(200);

    final String servers;
    final Admin admin;
    final Map<String, Running> running = new ConcurrentHashMap<>();

    interface Running {
        void close() throws Exception;
    }

    interface Step {
        void run() throws Exception;
    }

    Clients(String servers) {
        this.servers = servers;
        this.admin = Admin.create(Map.of("bootstrap.servers", servers));
    }

    public static void main(String[] args) throws Exception {
        serve(new Clients(args[0]));
    }

    static void serve(Clients clients) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            ObjectNode answer = JSON.createObjectNode();
            try {
                clients.obey(JSON.readTree(line), answer);
            } catch (Exception error) {
                answer.put("error", error.toString());
            }
            System.out.println(JSON.writeValueAsString(answer));
        }
        for (Running each : clients.running.values()) {
            each.close();
        }
    }

    void obey(JsonNode order, ObjectNode answer) throws Exception {
        switch (order.get("do").asText()) {
            case "create" -> admin.createTopics(List.of(
                new NewTopic(text(order, "topic"), order.get("partitions").asInt(),
                    (short) order.path("replicas").asInt(1)))).all().get();
            case "move" -> {
                List<Integer> replicas = new ArrayList<>();
                order.get("replicas").forEach(replica -> replicas.add(replica.asInt()));
                admin.alterPartitionReassignments(Map.of(
                    new TopicPartition(text(order, "topic"), order.get("partition").asInt()),
                    Optional.of(new NewPartitionReassignment(replicas)))).all().get();
            }
            case "grow" -> admin.createPartitions(Map.of(
                text(order, "topic"), NewPartitions.increaseTo(order.get("partitions").asInt()))).all().get();
            case "produce" -> produce(text(order, "topic"), order.get("count").asInt());
            case "transaction" -> transaction(order);
            case "consumer" -> running.put(text(order, "name"), consumer(order));
            case "share" -> running.put(text(order, "name"), share(order));
            case "streams" -> running.put(text(order, "name"), streams(order));
            case "close" -> running.remove(text(order, "name")).close();
            case "describe" -> Described.all(admin, answer);
            default -> throw new IllegalArgumentException(order.toString());
        }
    }

    static String text(JsonNode order, String name) {
        return order.has(name) ? order.get(name).asText() : null;
    }

    static List<String> texts(JsonNode order, String name) {
        List<String> found = new ArrayList<>();
        order.get(name).forEach(each -> found.add(each.asText()));
        return found;
    }

    Properties settings(JsonNode order) {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", servers);
        settings.put("client.id", text(order, "name"));
        settings.put("group.id", text(order, "group"));
        settings.put("metadata.max.age.ms", "1000");
        settings.put("key.deserializer", StringDeserializer.class.getName());
        settings.put("value.deserializer", StringDeserializer.class.getName());
        if (order.has("settings")) {
            order.get("settings").properties().forEach(each -> settings.put(each.getKey(), each.getValue().asText()));
        }
        return settings;
    }

    private void produce(String topic, int count) throws Exception {
        try (var producer = new KafkaProducer<>(
                Map.of("bootstrap.servers", (Object) servers, "max.block.ms", 9000, "request.timeout.ms", 4000,
                    "delivery.timeout.ms", 9000), new StringSerializer(), new StringSerializer())) {
            for (int number = 0; number < count; number++) {
                producer.send(new ProducerRecord<>(topic, "key-" + number, "value")).get();
            }
        }
    }

    /** Offsets of a group within a transaction: committed, or aborted. */
    private void transaction(JsonNode order) throws Exception {
        Map<String, Object> settings = Map.of("bootstrap.servers", servers, "transactional.id", text(order, "name"));
        try (var producer = new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer());
                var consumer = new KafkaConsumer<String, String>(settings(order))) {
            producer.initTransactions();
            producer.beginTransaction();
            var offsets = Map.of(
                new TopicPartition(text(order, "topic"), 0), new OffsetAndMetadata(order.get("offset").asLong()));
            producer.sendOffsetsToTransaction(offsets, consumer.groupMetadata());
            if (order.get("commit").asBoolean()) {
                producer.commitTransaction();
            } else {
                producer.abortTransaction();
            }
        }
    }

    private Running consumer(JsonNode order) {
        Properties settings = settings(order);
        settings.put("auto.offset.reset", "earliest");
        settings.put("enable.auto.commit", "false");
        KafkaConsumer<String, String> consumer = new KafkaConsumer<>(settings);
        if (order.has("pattern")) {
            consumer.subscribe(new SubscriptionPattern(text(order, "pattern")));
        } else {
            consumer.subscribe(texts(order, "topics"));
        }
        return until(() -> {
            if (!consumer.poll(POLL).isEmpty()) {
                try {
                    consumer.commitSync();
                } catch (RebalanceInProgressException between) {
                    // A cooperative rebalance has two halves. The next commit covers these records, too.
                }
            }
        }, consumer::close);
    }

    private Running share(JsonNode order) {
        KafkaShareConsumer<String, String> consumer = new KafkaShareConsumer<>(settings(order));
        consumer.subscribe(texts(order, "topics"));
        return until(() -> consumer.poll(POLL), consumer::close);
    }

    private Running streams(JsonNode order) {
        Properties settings = new Properties();
        settings.put("application.id", text(order, "group"));
        settings.put("client.id", text(order, "name"));
        settings.put("bootstrap.servers", servers);
        settings.put("group.protocol", "streams");
        settings.put("state.dir", text(order, "state"));
        settings.put("commit.interval.ms", "500");
        settings.put("default.key.serde", Serdes.StringSerde.class.getName());
        settings.put("default.value.serde", Serdes.StringSerde.class.getName());
        StreamsBuilder builder = new StreamsBuilder();
        builder.stream(texts(order, "topics")).groupByKey().count(Materialized.as("counts"));
        KafkaStreams app = new KafkaStreams(builder.build(), settings);
        app.start();
        return () -> app.close(Duration.ofSeconds(10));
    }

    /** Runs the step again and again on a thread of its own until it is closed. */
    private static Running until(Step step, Step end) {
        boolean[] done = {false};
        Thread thread = new Thread(() -> {
            try {
                while (!done[0]) {
                    step.run();
                }
                end.run();
            } catch (Exception error) {
                System.err.println(error);
            }
        });
        thread.start();
        return () -> {
            done[0] = true;
            thread.join();
        };
    }
}
