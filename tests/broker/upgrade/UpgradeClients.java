import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Collection;
import java.util.HashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicReference;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.ListTopicsOptions;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.kstream.Materialized;

/**
 * Clients in one process, told by lines of JSON what to do; each line is answered by one. Compiles with each release
 * from 3.9 on, so what later releases brought is called by name.
 */
public final class UpgradeClients {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final Duration POLL = Duration.ofMillis(200);
    private static final String LOG = "__consumer_offsets";

    private final String servers;
    private final Admin admin;
    private final Map<String, Running> running = new TreeMap<>();

    private UpgradeClients(String servers) {
        this.servers = servers;
        this.admin = Admin.create(Map.of("bootstrap.servers", servers));
    }

    /** A client on a thread of its own. */
    private interface Running {
        void close() throws Exception;

        /** Writes down what the client holds now; a share consumer does not tell. */
        default void holds(ObjectNode into) { }
    }

    public static void main(String[] args) throws Exception {
        UpgradeClients clients = new UpgradeClients(args[0]);
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

    private void obey(JsonNode order, ObjectNode answer) throws Exception {
        String topic = text(order, "topic");
        String name = text(order, "name");
        switch (order.get("do").asText()) {
            case "create" -> admin.createTopics(
                List.of(new NewTopic(topic, order.get("partitions").asInt(), (short) 1))).all().get();
            case "grow" -> admin.createPartitions(
                Map.of(topic, NewPartitions.increaseTo(order.get("partitions").asInt()))).all().get();
            case "delete" -> admin.deleteTopics(List.of(topic)).all().get();
            case "produce" -> produce(topic, order.get("count").asInt());
            case "features" -> Features.raise(admin, answer);
            case "consumer" -> running.put(name, consumer(order));
            case "share" -> running.put(name, share(order));
            case "streams" -> running.put(name, streams(order));
            case "close" -> running.remove(name).close();
            case "holds" -> holds(answer);
            default -> throw new IllegalArgumentException(order.toString());
        }
    }

    private static String text(JsonNode order, String name) {
        return order.has(name) ? order.get(name).asText() : null;
    }

    private static Set<String> texts(JsonNode order, String name) {
        Set<String> found = new LinkedHashSet<>();
        order.get(name).forEach(each -> found.add(each.asText()));
        return found;
    }

    private void produce(String topic, int count) throws Exception {
        try (var producer = new KafkaProducer<>(
                Map.of("bootstrap.servers", (Object) servers), new StringSerializer(), new StringSerializer())) {
            for (int number = 0; number < count; number++) {
                producer.send(new ProducerRecord<>(topic, "key-" + number, "value")).get();
            }
        }
    }

    private Properties settings(JsonNode order) {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", servers);
        settings.put("client.id", text(order, "name"));
        settings.put("group.id", text(order, "group"));
        settings.put("metadata.max.age.ms", "1000");
        settings.put("key.deserializer", StringDeserializer.class.getName());
        settings.put("value.deserializer", StringDeserializer.class.getName());
        if (order.has("settings")) {
            order.get("settings").fields().forEachRemaining(
                each -> settings.put(each.getKey(), each.getValue().asText()));
        }
        return settings;
    }

    private Running consumer(JsonNode order) {
        Properties settings = settings(order);
        settings.put("auto.offset.reset", "earliest");
        settings.put("enable.auto.commit", "false");
        KafkaConsumer<String, String> consumer = new KafkaConsumer<>(settings);
        consumer.subscribe(texts(order, "topics"));
        AtomicReference<Set<TopicPartition>> held = new AtomicReference<>(Set.of());
        AtomicReference<String> member = new AtomicReference<>("");
        return until(() -> {
            boolean some = !consumer.poll(POLL).isEmpty();
            held.set(Set.copyOf(consumer.assignment()));
            member.set(consumer.groupMetadata().memberId());
            if (some) {
                consumer.commitSync();
            }
        }, consumer::close, into -> {
            into.put("member", member.get());
            held.get().stream().map(TopicPartition::toString).sorted().forEach(into.withArray("partitions")::add);
        });
    }

    private Running share(JsonNode order) throws Exception {
        Class<?> type = Class.forName("org.apache.kafka.clients.consumer.KafkaShareConsumer");
        Object consumer = type.getConstructor(Properties.class).newInstance(settings(order));
        type.getMethod("subscribe", Collection.class).invoke(consumer, texts(order, "topics"));
        var poll = type.getMethod("poll", Duration.class);
        var close = type.getMethod("close");
        return until(() -> poll.invoke(consumer, POLL), () -> close.invoke(consumer), into -> { });
    }

    private Running streams(JsonNode order) {
        Properties settings = new Properties();
        settings.put("application.id", text(order, "group"));
        settings.put("client.id", text(order, "name"));
        settings.put("bootstrap.servers", servers);
        settings.put("group.protocol", text(order, "protocol"));
        settings.put("state.dir", text(order, "state"));
        settings.put("commit.interval.ms", "500");
        settings.put("metadata.max.age.ms", "1000");
        settings.put("default.key.serde", Serdes.StringSerde.class.getName());
        settings.put("default.value.serde", Serdes.StringSerde.class.getName());
        StreamsBuilder builder = new StreamsBuilder();
        builder.stream(texts(order, "topics")).groupByKey().count(Materialized.as("counts"));
        KafkaStreams app = new KafkaStreams(builder.build(), settings);
        app.start();
        return new Running() {
            public void close() {
                app.close(Duration.ofSeconds(10));
            }

            public void holds(ObjectNode into) {
                ArrayNode tasks = into.putArray("tasks");
                app.metadataForLocalThreads().stream().flatMap(each -> each.activeTasks().stream())
                    .map(each -> each.taskId().toString()).sorted().forEach(tasks::add);
            }
        };
    }

    /** What each client of this process holds, and the ends of the coordinator's log. */
    private void holds(ObjectNode answer) throws Exception {
        ObjectNode ends = answer.putObject("ends");
        if (admin.listTopics(new ListTopicsOptions().listInternal(true)).names().get()
                .contains(LOG)) {
            int partitions = admin.describeTopics(List.of(LOG)).allTopicNames().get().get(LOG).partitions().size();
            Map<TopicPartition, OffsetSpec> wanted = IntStream.range(0, partitions).boxed()
                .collect(Collectors.toMap(each -> new TopicPartition(LOG, each), each -> OffsetSpec.latest()));
            new HashMap<>(admin.listOffsets(wanted).all().get()).forEach(
                (at, end) -> ends.put(Integer.toString(at.partition()), end.offset()));
        }
        ObjectNode clients = answer.putObject("clients");
        running.forEach((name, each) -> each.holds(clients.putObject(name)));
    }

    private interface Step {
        void run() throws Exception;
    }

    private interface Holds {
        void write(ObjectNode into);
    }

    /** Runs the step again and again on a thread of its own until it is closed. */
    private static Running until(Step step, Step end, Holds holds) {
        AtomicBoolean done = new AtomicBoolean();
        Thread thread = new Thread(() -> {
            try {
                while (!done.get()) {
                    step.run();
                }
                end.run();
            } catch (Exception error) {
                error.printStackTrace();
            }
        });
        thread.start();
        return new Running() {
            public void close() throws Exception {
                done.set(true);
                thread.join();
            }

            public void holds(ObjectNode into) {
                holds.write(into);
            }
        };
    }
}
