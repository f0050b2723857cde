import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedWriter;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Random;
import java.util.Set;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.TimeUnit;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.MemberToRemove;
import org.apache.kafka.clients.admin.RemoveMembersFromConsumerGroupOptions;
import org.apache.kafka.clients.consumer.AcknowledgeType;
import org.apache.kafka.clients.consumer.CloseOptions;
import org.apache.kafka.clients.consumer.Consumer;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.consumer.SubscriptionPattern;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.errors.FencedInstanceIdException;
import org.apache.kafka.common.errors.ProducerFencedException;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.serialization.StringSerializer;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.kstream.JoinWindows;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.processor.internals.DefaultKafkaClientSupplier;

/** Clients that live as clients in production do, and write down in a file what they saw and did, as it happens: what a
 * process saw before it is killed is not lost. */
public final class WildClients extends Clients {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final Duration POLL = Duration.ofMillis(150);

    private final BufferedWriter events;

    private WildClients(String servers, Path events) throws IOException {
        super(servers);
        this.events = Files.newBufferedWriter(events);
    }

    public static void main(String[] args) throws Exception {
        serve(new WildClients(args[0], Path.of(args[1])));
    }

    @Override
    void obey(JsonNode order, ObjectNode answer) throws Exception {
        String topic = text(order, "topic");
        String group = text(order, "group");
        String name = text(order, "name");
        switch (order.get("do").asText()) {
            case "wild_consumer" -> start(name, new Member(order));
            case "wild_share" -> start(name, new Sharer(order));
            case "wild_streams" -> running.put(name, application(order));
            case "stay_away", "pause", "subscribe" -> ((Loop) running.get(name)).wish(order);
            case "abandon" -> {
                ((Loop) running.remove(name)).abandon();
            }
            case "delete" -> admin.deleteTopics(List.of(topic)).all().get();
            case "alter_offset" -> admin.alterConsumerGroupOffsets(group, Map.of(
                new TopicPartition(topic, order.get("partition").asInt()),
                new OffsetAndMetadata(order.get("offset").asLong(), "set by admin"))).all().get();
            case "delete_offset" -> admin.deleteConsumerGroupOffsets(
                group, Set.of(new TopicPartition(topic, order.get("partition").asInt()))).all().get();
            case "alter_share_offset" -> admin.alterShareGroupOffsets(group, Map.of(
                new TopicPartition(topic, order.get("partition").asInt()), order.get("offset").asLong())).all().get();
            case "delete_share_offset" -> admin.deleteShareGroupOffsets(group, Set.of(topic)).all().get();
            case "remove_all" -> admin.removeMembersFromConsumerGroup(
                group, new RemoveMembersFromConsumerGroupOptions()).all().get();
            case "delete_group" -> delete(group, text(order, "type"));
            case "remove_static" -> admin.removeMembersFromConsumerGroup(group,
                new RemoveMembersFromConsumerGroupOptions(Set.of(new MemberToRemove(text(order, "instance"))))).all().get();
            case "configure" -> configure(ConfigResource.Type.GROUP, group, order.get("settings"));
            case "configure_topic" -> configure(ConfigResource.Type.TOPIC, topic, order.get("settings"));
            case "open_transaction" -> running.put(name, open(order));
            case "topics" -> {
                ArrayNode names = answer.putArray("topics");
                admin.listTopics().names().get().forEach(names::add);
            }
            case "features" -> Features.raise(admin, answer);
            default -> super.obey(order, answer);
        }
    }

    private void start(String name, Loop loop) {
        running.put(name, loop);
        loop.start();
    }

    private void delete(String group, String type) throws Exception {
        switch (type) {
            case "share" -> admin.deleteShareGroups(List.of(group)).all().get();
            case "streams" -> admin.deleteStreamsGroups(List.of(group)).all().get();
            default -> admin.deleteConsumerGroups(List.of(group)).all().get();
        }
    }

    private void configure(ConfigResource.Type type, String name, JsonNode settings) throws Exception {
        List<AlterConfigOp> changes = settings.properties().stream().map(each -> new AlterConfigOp(
            new ConfigEntry(each.getKey(), each.getValue().isNull() ? null : each.getValue().asText()),
            each.getValue().isNull() ? AlterConfigOp.OpType.DELETE : AlterConfigOp.OpType.SET)).toList();
        admin.incrementalAlterConfigs(Map.of(new ConfigResource(type, name), changes)).all().get();
    }

    /** Commits in a transaction that stays open until the client is closed. */
    private Running open(JsonNode order) {
        var producer = new KafkaProducer<>(Map.<String, Object>of("bootstrap.servers", servers,
            "transactional.id", text(order, "name"), "transaction.timeout.ms", order.get("timeout").asInt()),
            new StringSerializer(), new StringSerializer());
        producer.initTransactions();
        producer.beginTransaction();
        try (var consumer = new KafkaConsumer<String, String>(settings(order))) {
            producer.sendOffsetsToTransaction(Map.of(
                new TopicPartition(text(order, "topic"), order.get("partition").asInt()),
                new OffsetAndMetadata(order.get("offset").asLong())), consumer.groupMetadata());
        }
        boolean commits = order.get("commit").asBoolean();
        return () -> {
            try (producer) {
                if (commits) {
                    producer.commitTransaction();
                } else {
                    producer.abortTransaction();
                }
            }
        };
    }

    private static ObjectNode event(String what, String name) {
        ObjectNode made = JSON.createObjectNode();
        return made.put("at_ms", System.currentTimeMillis()).put("event", what).put("name", name);
    }

    private synchronized void write(ObjectNode event) {
        try {
            events.write(JSON.writeValueAsString(event));
            events.newLine();
            events.flush();
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }

    private static void put(ObjectNode made, String what, Collection<TopicPartition> partitions) {
        partitions.stream().map(TopicPartition::toString).sorted().forEach(made.putArray(what)::add);
    }

    /** What a listener of a consumer was called with, and which member in which epoch it was then. */
    private void saw(String what, String name, Consumer<?, ?> consumer, Collection<TopicPartition> partitions) {
        ObjectNode made = by(event(what, name), consumer);
        put(made, "partitions", partitions);
        put(made, "held", consumer.assignment());
        write(made);
    }

    private static ObjectNode by(ObjectNode made, Consumer<?, ?> consumer) {
        var metadata = consumer.groupMetadata();
        made.put("group", metadata.groupId()).put("member", metadata.memberId());
        return made.put("epoch", metadata.generationId());
    }

    private ObjectNode commit(String name, Consumer<?, ?> consumer, Map<TopicPartition, OffsetAndMetadata> offsets) {
        ObjectNode made = by(event("commits", name), consumer);
        made.put("began_ms", System.currentTimeMillis()).put("kept", true);
        ObjectNode each = made.putObject("offsets");
        offsets.forEach((at, offset) -> each.put(at.toString(), offset.offset()));
        return made;
    }

    private void done(ObjectNode commit) {
        write(commit.put("at_ms", System.currentTimeMillis()));
    }

    /** A client on a thread of its own; orders to it wait until its next poll. */
    private abstract class Loop extends Thread implements Running {
        final JsonNode order;
        final String name;
        private final ConcurrentLinkedQueue<JsonNode> wishes = new ConcurrentLinkedQueue<>();
        private volatile String end = "";

        Loop(JsonNode order) {
            super(text(order, "name"));
            this.order = order;
            this.name = text(order, "name");
            setDaemon(true);
        }

        abstract void step() throws Exception;

        abstract void fulfil(JsonNode wish) throws Exception;

        abstract void end(boolean leaves);

        void wish(JsonNode wish) {
            wishes.add(wish);
        }

        @Override
        public void run() {
            while (end.isEmpty()) {
                try {
                    for (JsonNode wish = wishes.poll(); wish != null; wish = wishes.poll()) {
                        if (wish.get("do").asText().equals("pause")) {
                            write(event("pauses", name));
                            Thread.sleep(wish.get("ms").asLong());
                            write(event("resumes", name));
                        } else {
                            fulfil(wish);
                        }
                    }
                    step();
                } catch (FencedInstanceIdException | ProducerFencedException | BrokenProducer error) {
                    write(event("fenced", name).put("error", error.toString()));
                    end = "stays";
                } catch (Exception error) {
                    write(event("error", name).put("error", error.toString()));
                    pause();
                }
            }
            try {
                write(event("ends", name).put("how", end));
                end(end.equals("leaves"));
                write(event("ended", name).put("how", end));
            } catch (Exception error) {
                write(event("error", name).put("error", "at the end: " + error));
            }
        }

        private static void pause() {
            try {
                Thread.sleep(300);
            } catch (InterruptedException error) {
                Thread.currentThread().interrupt();
            }
        }

        /** End without a word to the group, as a crash does. */
        void abandon() throws Exception {
            end = "stays";
            join(6_000);
        }

        @Override
        public void close() throws Exception {
            end = end.isEmpty() ? "leaves" : end;
            join(6_000);
        }
    }

    /** A producer that neither commits nor aborts: its client ends, as an application would. */
    private static final class BrokenProducer extends RuntimeException {
        BrokenProducer(KafkaException cause) {
            super(cause);
        }
    }

    /** A consumer, classic or of KIP-848, with one way to commit: not at all, plain, or within transactions. */
    private final class Member extends Loop implements ConsumerRebalanceListener {
        private final KafkaConsumer<String, String> consumer;
        private final KafkaProducer<String, String> producer;
        private final String commits;
        private final Random chance;
        private final Map<TopicPartition, Long> next = new HashMap<>();
        private final boolean commitsRevoked;
        private long committed;

        Member(JsonNode order) {
            super(order);
            commitsRevoked = order.path("commits_revoked").asBoolean();
            Properties settings = settings(order);
            settings.putIfAbsent("auto.offset.reset", "earliest");
            settings.put("enable.auto.commit", "false");
            settings.put("default.api.timeout.ms", "15000");
            consumer = new KafkaConsumer<>(settings);
            commits = text(order, "commits");
            chance = new Random(order.get("seed").asLong());
            producer = commits.equals("transaction") ? new KafkaProducer<>(Map.<String, Object>of(
                "bootstrap.servers", servers, "transactional.id", name, "transaction.timeout.ms", 8000,
                "max.block.ms", 10_000), new StringSerializer(), new StringSerializer()) : null;
            subscribe(order);
        }

        private void subscribe(JsonNode order) {
            if (!order.has("pattern")) {
                consumer.subscribe(texts(order, "topics"), this);
            } else if (order.has("client_side")) {
                consumer.subscribe(Pattern.compile(text(order, "pattern")), this);
            } else {
                consumer.subscribe(new SubscriptionPattern(text(order, "pattern")), this);
            }
        }

        @Override
        void fulfil(JsonNode wish) {
            write(event("subscribes", name));
            subscribe(wish);
        }

        @Override
        void step() {
            for (var each : consumer.poll(POLL)) {
                next.put(new TopicPartition(each.topic(), each.partition()), each.offset() + 1);
            }
            next.keySet().retainAll(consumer.assignment());
            if (next.isEmpty() || commits.equals("none") || System.currentTimeMillis() - committed < 400) {
                return;
            }
            committed = System.currentTimeMillis();
            Map<TopicPartition, OffsetAndMetadata> offsets = next.entrySet().stream()
                .filter(each -> chance.nextInt(3) > 0).collect(Collectors.toMap(Map.Entry::getKey,
                    each -> new OffsetAndMetadata(each.getValue(), chance.nextBoolean() ? "" : "m" + chance.nextInt(100))));
            if (offsets.isEmpty()) {
                return;
            }
            boolean isKept = producer == null || chance.nextInt(4) > 0;
            ObjectNode made = commit(name, consumer, offsets).put("kept", isKept);
            if (producer == null) {
                consumer.commitSync(offsets);
            } else {
                transact(offsets, isKept);
            }
            done(made);
        }

        private boolean hasBegun;

        private void transact(Map<TopicPartition, OffsetAndMetadata> offsets, boolean isKept) {
            if (!hasBegun) {
                producer.initTransactions();
                hasBegun = true;
            }
            producer.beginTransaction();
            try {
                producer.sendOffsetsToTransaction(offsets, consumer.groupMetadata());
                if (isKept) {
                    producer.commitTransaction();
                } else {
                    producer.abortTransaction();
                }
            } catch (ProducerFencedException error) {
                throw error;
            } catch (KafkaException error) {
                try {
                    producer.abortTransaction();
                } catch (KafkaException other) {
                    throw new BrokenProducer(other);
                }
                throw error;
            }
        }

        @Override
        public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
            saw("assigned", name, consumer, partitions);
        }

        /** Commit what it read of the partitions that it gives up, as careful consumers do. */
        @Override
        public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
            saw("revoked", name, consumer, partitions);
            Map<TopicPartition, OffsetAndMetadata> offsets = next.entrySet().stream()
                .filter(each -> partitions.contains(each.getKey())).collect(Collectors.toMap(Map.Entry::getKey,
                    each -> new OffsetAndMetadata(each.getValue())));
            if (commitsRevoked && !offsets.isEmpty()) {
                ObjectNode made = commit(name, consumer, offsets).put("while", "revoked");
                consumer.commitSync(offsets);
                done(made);
            }
            next.keySet().removeAll(partitions);
        }

        @Override
        public void onPartitionsLost(Collection<TopicPartition> partitions) {
            saw("lost", name, consumer, partitions);
            next.keySet().removeAll(partitions);
        }

        @Override
        void end(boolean leaves) {
            if (producer != null) {
                producer.close(Duration.ofSeconds(2));
            }
            if (leaves) {
                consumer.close();
            } else {
                consumer.close(CloseOptions.timeout(Duration.ofSeconds(5))
                    .withGroupMembershipOperation(CloseOptions.GroupMembershipOperation.REMAIN_IN_GROUP));
            }
        }
    }

    /** A share consumer that accepts most records, releases some and rejects some. */
    private final class Sharer extends Loop {
        private final KafkaShareConsumer<String, String> consumer;
        private final Random chance;

        Sharer(JsonNode order) {
            super(order);
            Properties settings = settings(order);
            settings.put("share.acknowledgement.mode", "explicit");
            consumer = new KafkaShareConsumer<>(settings);
            chance = new Random(order.get("seed").asLong());
            consumer.subscribe(texts(order, "topics"));
        }

        @Override
        void step() {
            Set<TopicPartition> of = new HashSet<>();
            for (var each : consumer.poll(POLL)) {
                of.add(new TopicPartition(each.topic(), each.partition()));
                int luck = chance.nextInt(10);
                consumer.acknowledge(each,
                    luck > 2 ? AcknowledgeType.ACCEPT : luck > 0 ? AcknowledgeType.RELEASE : AcknowledgeType.REJECT);
            }
            if (!of.isEmpty()) {
                ObjectNode made = event("received", name).put("group", text(order, "group"));
                put(made, "partitions", of);
                write(made);
            }
            consumer.commitSync();
        }

        @Override
        void fulfil(JsonNode wish) {
            consumer.subscribe(texts(wish, "topics"));
        }

        @Override
        void end(boolean leaves) {
            consumer.close(leaves ? Duration.ofSeconds(5) : Duration.ZERO);
        }
    }

    /** A Streams application of one of several shapes; its threads and standbys come with the settings. */
    private Running application(JsonNode order) {
        Properties settings = new Properties();
        settings.put("application.id", text(order, "group"));
        settings.put("client.id", text(order, "name"));
        settings.put("bootstrap.servers", servers);
        settings.put("state.dir", text(order, "state"));
        settings.put("commit.interval.ms", "700");
        settings.put("metadata.max.age.ms", "1000");
        settings.put("default.key.serde", Serdes.StringSerde.class.getName());
        settings.put("default.value.serde", Serdes.StringSerde.class.getName());
        order.get("settings").properties().forEach(each -> settings.put(each.getKey(), each.getValue().asText()));
        List<String> topics = texts(order, "topics");
        StreamsBuilder builder = new StreamsBuilder();
        switch (text(order, "shape")) {
            case "stateless" -> builder.stream(topics).mapValues(each -> each + "!").to(text(order, "to"));
            case "repartitioned" -> builder.<String, String>stream(topics)
                .groupBy((key, value) -> value).count(Materialized.as("counts"));
            case "joined" -> {
                var left = builder.<String, String>stream(topics.get(0));
                var right = builder.<String, String>stream(topics.get(1)).selectKey((key, value) -> value);
                left.selectKey((key, value) -> value).join(right, (one, other) -> one + other,
                    JoinWindows.ofTimeDifferenceWithNoGrace(Duration.ofSeconds(2))).to(text(order, "to"));
            }
            default -> {
                builder.stream(topics).groupByKey().count(Materialized.as("counts"));
                builder.<String, String>stream(text(order, "other")).foreach((key, value) -> { });
            }
        }
        boolean isClassic = settings.get("group.protocol").equals("classic");
        KafkaStreams app = isClassic ? new KafkaStreams(builder.build(), settings, new Watched(text(order, "name")))
            : new KafkaStreams(builder.build(), settings);
        app.setUncaughtExceptionHandler(error -> {
            write(event("error", text(order, "name")).put("error", error.toString()));
            return org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse
                .SHUTDOWN_CLIENT;
        });
        app.start();
        return () -> {
            write(event("ends", text(order, "name")).put("how", "leaves"));
            app.close(Duration.ofSeconds(8));
            write(event("ended", text(order, "name")).put("how", "leaves"));
        };
    }

    /** The consumers of a Streams application on the classic protocol, which write down what they see. */
    private final class Watched extends DefaultKafkaClientSupplier {
        private final String name;

        Watched(String name) {
            this.name = name;
        }

        @Override
        public Consumer<byte[], byte[]> getConsumer(Map<String, Object> config) {
            return new WatchedConsumer(name, config);
        }
    }

    private final class WatchedConsumer extends KafkaConsumer<byte[], byte[]> {
        private final String name;

        WatchedConsumer(String name, Map<String, Object> config) {
            super(config, new ByteArrayDeserializer(), new ByteArrayDeserializer());
            this.name = name;
        }

        @Override
        public void subscribe(Collection<String> topics, ConsumerRebalanceListener listener) {
            super.subscribe(topics, new WatchingListener(name, this, listener));
        }

        @Override
        public void subscribe(Pattern pattern, ConsumerRebalanceListener listener) {
            super.subscribe(pattern, new WatchingListener(name, this, listener));
        }

        @Override
        public void commitSync(Map<TopicPartition, OffsetAndMetadata> offsets) {
            ObjectNode made = commit(name, this, offsets);
            super.commitSync(offsets);
            done(made);
        }
    }

    private final class WatchingListener implements ConsumerRebalanceListener {
        private final String name;
        private final Consumer<?, ?> consumer;
        private final ConsumerRebalanceListener inner;

        WatchingListener(String name, Consumer<?, ?> consumer, ConsumerRebalanceListener inner) {
            this.name = name;
            this.consumer = consumer;
            this.inner = inner;
        }

        @Override
        public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
            saw("assigned", name, consumer, partitions);
            inner.onPartitionsAssigned(partitions);
        }

        @Override
        public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
            saw("revoked", name, consumer, partitions);
            inner.onPartitionsRevoked(partitions);
        }

        @Override
        public void onPartitionsLost(Collection<TopicPartition> partitions) {
            saw("lost", name, consumer, partitions);
            inner.onPartitionsLost(partitions);
        }
    }
}
