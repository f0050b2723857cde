package org.apache.kafka.coordinator.group;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.net.InetAddress;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.HashSet;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.config.AbstractConfig;
import org.apache.kafka.common.errors.ApiException;
import org.apache.kafka.common.message.AlterShareGroupOffsetsRequestDataJsonConverter;
import org.apache.kafka.common.message.AlterShareGroupOffsetsResponseDataJsonConverter;
import org.apache.kafka.common.message.DeleteShareGroupOffsetsRequestDataJsonConverter;
import org.apache.kafka.common.message.DeleteShareGroupOffsetsResponseData;
import org.apache.kafka.common.message.DeleteShareGroupOffsetsResponseDataJsonConverter;
import org.apache.kafka.common.message.ShareGroupHeartbeatRequestDataJsonConverter;
import org.apache.kafka.common.message.ShareGroupHeartbeatResponseDataJsonConverter;
import org.apache.kafka.common.metadata.PartitionRecord;
import org.apache.kafka.common.metadata.RemoveTopicRecord;
import org.apache.kafka.common.metadata.TopicRecord;
import org.apache.kafka.common.network.ClientInformation;
import org.apache.kafka.common.network.ListenerName;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.requests.RequestContext;
import org.apache.kafka.common.requests.RequestHeader;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.common.security.auth.SecurityProtocol;
import org.apache.kafka.common.utils.LogContext;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.common.utils.Utils;
import org.apache.kafka.coordinator.common.runtime.CoordinatorExecutor;
import org.apache.kafka.coordinator.common.runtime.CoordinatorRecord;
import org.apache.kafka.coordinator.common.runtime.CoordinatorResult;
import org.apache.kafka.coordinator.common.runtime.CoordinatorTimer;
import org.apache.kafka.coordinator.common.runtime.KRaftCoordinatorMetadataDelta;
import org.apache.kafka.coordinator.common.runtime.KRaftCoordinatorMetadataImage;
import org.apache.kafka.coordinator.group.generated.*;
import org.apache.kafka.coordinator.group.metrics.GroupCoordinatorMetrics;
import org.apache.kafka.coordinator.group.modern.share.ShareGroup;
import org.apache.kafka.coordinator.group.modern.share.ShareGroupConfig;
import org.apache.kafka.image.MetadataDelta;
import org.apache.kafka.image.MetadataImage;
import org.apache.kafka.image.MetadataProvenance;
import org.apache.kafka.server.share.persister.InitializeShareGroupStateParameters;
import org.apache.kafka.timeline.SnapshotRegistry;

/**
 * Drives the group coordinator of Apache Kafka with a script of share group operations (JSON lines on standard input, a
 * header first) and writes the trace of what it did: records, answers, timers, the group afterwards.
 */
public final class ShareTraces {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final String GROUP = "g1";

    private static final class Clock implements Time {
        private long ms;
        public long milliseconds() { return ms; }
        public long nanoseconds() { return ms * 1_000_000; }
        public void sleep(long each) { ms += each; }
        public void waitObject(Object object, Supplier<Boolean> condition, long deadline) { }
        public <T> T waitForFuture(CompletableFuture<T> future, long deadline) { throw new UnsupportedOperationException(); }
    }

    private record Armed(String key, long deadline, CoordinatorTimer.TimeoutOperation<CoordinatorRecord> operation) { }

    private static final Clock clock = new Clock();
    private static final Map<String, Armed> timers = new LinkedHashMap<>();
    private static final List<CoordinatorRecord> log = new ArrayList<>();
    private static GroupMetadataManager manager;
    private static GroupCoordinatorConfig config;
    private static GroupConfigManager groupConfigs;
    private static MetadataImage image = MetadataImage.EMPTY;
    private static long version;

    private static final class Timers implements CoordinatorTimer<CoordinatorRecord> {
        public void schedule(String key, long delay, TimeUnit unit, boolean retry, TimeoutOperation<CoordinatorRecord> operation) {
            timers.put(key, new Armed(key, clock.ms + unit.toMillis(delay), operation));
        }
        public void schedule(String key, long delay, TimeUnit unit, boolean retry, long backoff, TimeoutOperation<CoordinatorRecord> operation) {
            schedule(key, delay, unit, retry, operation);
        }
        public void scheduleIfAbsent(String key, long delay, TimeUnit unit, boolean retry, TimeoutOperation<CoordinatorRecord> operation) {
            if (!timers.containsKey(key)) schedule(key, delay, unit, retry, operation);
        }
        public void cancel(String key) { timers.remove(key); }
        public boolean isScheduled(String key) { return timers.containsKey(key); }
    }

    private static final class NoExecutor implements CoordinatorExecutor<CoordinatorRecord> {
        public <R> boolean schedule(String key, TaskRunnable<R> task, TaskOperation<CoordinatorRecord, R> operation) { return false; }
        public boolean isScheduled(String key) { return false; }
        public void cancel(String key) { }
    }

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        int number = 0;
        for (String text = in.readLine(); text != null; text = in.readLine()) {
            JsonNode line = JSON.readTree(text);
            if (line.get("kind").asText().equals("header")) {
                begin(line);
                number = 0;
                System.out.println(text);
            } else if (line.get("kind").asText().equals("end")) {
                System.out.println(JSON.writeValueAsString(((ObjectNode) line).put("steps", number)));
            } else {
                ObjectNode step = (ObjectNode) line;
                step.put("i", number++).put("t_ms", clock.ms);
                run(step);
                step.set("after", after());
                System.out.println(JSON.writeValueAsString(step));
            }
        }
    }

    private static void begin(JsonNode header) throws Exception {
        clock.ms = header.get("start_ms").asLong();
        timers.clear();
        log.clear();
        Map<String, String> settings = new HashMap<>();
        header.get("config").fields().forEachRemaining(each -> settings.put(each.getKey(),
            each.getValue().isArray() ? "uniform,range" : each.getValue().asText()));
        config = new GroupCoordinatorConfig(new AbstractConfig(GroupCoordinatorConfig.CONFIG_DEF, settings, false));
        groupConfigs = new GroupConfigManager(Map.of(), config, new ShareGroupConfig(new AbstractConfig(Utils.mergeConfigs(List.of(GroupCoordinatorConfig.CONFIG_DEF, ShareGroupConfig.CONFIG_DEF)), settings, false)));
        image = MetadataImage.EMPTY;
        version = header.get("image_version").asLong();
        MetadataDelta delta = new MetadataDelta.Builder().setImage(image).build();
        header.get("topics").forEach(topic -> create(delta, topic, 0));
        image = delta.apply(new MetadataProvenance(version, 0, 0, true));
        manager = fresh();
        publishUnchanged();
    }

    private static GroupMetadataManager fresh() {
        SnapshotRegistry registry = new SnapshotRegistry(new LogContext());
        return new GroupMetadataManager.Builder().withTime(clock).withTimer(new Timers()).withExecutor(new NoExecutor())
            .withSnapshotRegistry(registry).withConfig(config).withGroupConfigManager(groupConfigs)
            .withGroupCoordinatorMetricsShard(new GroupCoordinatorMetrics().newMetricsShard(registry, new TopicPartition("__consumer_offsets", 0)))
            .build();
    }

    private static void publishUnchanged() {
        manager.onMetadataUpdate(new KRaftCoordinatorMetadataDelta(new MetadataDelta.Builder().setImage(image).build()),
            new KRaftCoordinatorMetadataImage(image));
    }

    private static void create(MetadataDelta delta, JsonNode topic, int first) {
        Uuid id = Uuid.fromString(topic.get("id").asText());
        if (first == 0) {
            delta.replay(new TopicRecord().setName(topic.get("name").asText()).setTopicId(id));
        }
        for (int partition = first; partition < topic.get("partitions").asInt(); partition++) {
            delta.replay(new PartitionRecord().setTopicId(id).setPartitionId(partition).setReplicas(List.of(0)).setIsr(List.of(0)).setLeader(0));
        }
    }

    private static void run(ObjectNode step) throws Exception {
        String op = step.get("op").asText();
        try {
            switch (op) {
                case "request" -> request(step);
                case "advance" -> advance(step);
                case "metadata" -> metadata(step);
                case "initialize_share_group_state" -> write(step, manager.initializeShareGroupState(GROUP, partitions(step)));
                case "uninitialize_share_group_state" -> write(step, manager.uninitializeShareGroupState(GROUP, partitions(step)));
                case "share_cleanup" -> {
                    Set<Uuid> ids = new HashSet<>();
                    step.get("deleted_topic_ids").forEach(each -> ids.add(Uuid.fromString(each.asText())));
                    write(step, manager.maybeCleanupShareGroupState(ids));
                }
                case "delete_group" -> {
                    manager.validateDeleteGroup(GROUP);
                    List<CoordinatorRecord> records = new ArrayList<>();
                    manager.createGroupTombstoneRecordsAndCancelTimers(manager.group(GROUP), records);
                    write(step, new CoordinatorResult<Void, CoordinatorRecord>(records));
                }
                case "prepare_delete_group" -> {
                    manager.validateDeleteGroup(GROUP);
                    List<CoordinatorRecord> records = new ArrayList<>();
                    var asked = manager.shareGroupBuildPartitionDeleteRequest(GROUP, records);
                    if (asked.isPresent()) {
                        ArrayNode topics = step.putArray("delete_share_group_state");
                        asked.get().groupTopicPartitionData().topicsData().forEach(topic -> {
                            ObjectNode one = topics.addObject().put("topic_id", topic.topicId().toString());
                            ArrayNode numbers = one.putArray("partitions");
                            topic.partitions().forEach(each -> numbers.add(each.partition()));
                        });
                    }
                    write(step, new CoordinatorResult<Void, CoordinatorRecord>(records));
                }
                case "share_offsets_deleted" -> {
                    Map<Uuid, String> topics = new LinkedHashMap<>();
                    step.get("topics").fields().forEachRemaining(each -> topics.put(Uuid.fromString(each.getKey()), each.getValue().asText()));
                    List<CoordinatorRecord> records = new ArrayList<>();
                    var responses = manager.completeDeleteShareGroupOffsets(GROUP, topics, records);
                    write(step, new CoordinatorResult<Void, CoordinatorRecord>(records));
                    step.set("response", DeleteShareGroupOffsetsResponseDataJsonConverter.write(
                        new DeleteShareGroupOffsetsResponseData().setResponses(responses), (short) 0));
                }
                case "fail_over" -> {
                    timers.clear();
                    manager = fresh();
                    log.forEach(ShareTraces::replay);
                    publishUnchanged();
                    manager.onLoaded();
                }
                default -> throw new IllegalArgumentException(op);
            }
        } catch (ApiException | NullPointerException | ClassCastException error) {
            step.putArray("records");
            Errors code = Errors.forException(error);
            step.putObject("error").put("kind", error.getClass().getSimpleName()).put("code", code.name())
                .put("code_id", code.code()).put("message", error.getMessage()).put("layer", "manager");
        }
    }

    private static Map<Uuid, Set<Integer>> partitions(JsonNode step) {
        Map<Uuid, Set<Integer>> found = new HashMap<>();
        step.get("topic_partitions").forEach(topic -> {
            Set<Integer> numbers = new HashSet<>();
            topic.get("partitions").forEach(each -> numbers.add(each.asInt()));
            found.put(Uuid.fromString(topic.get("topic_id").asText()), numbers);
        });
        return found;
    }

    private static void request(ObjectNode step) throws Exception {
        JsonNode request = step.get("request");
        String api = request.get("api").asText();
        short number = (short) request.get("version").asInt();
        RequestContext context = new RequestContext(
            new RequestHeader(ApiKeys.SHARE_GROUP_HEARTBEAT, number, request.get("client_id").asText(), step.get("i").asInt()),
            "1", InetAddress.getByName("127.0.0.1"), KafkaPrincipal.ANONYMOUS, ListenerName.normalised("PLAINTEXT"),
            SecurityProtocol.PLAINTEXT, ClientInformation.EMPTY, false);
        if (api.equals("ShareGroupHeartbeat")) {
            var result = manager.shareGroupHeartbeat(context, ShareGroupHeartbeatRequestDataJsonConverter.read(request.get("data"), number));
            write(step, result);
            result.response().getValue().ifPresent(asked -> step.set("initialize_share_group_state", asked(asked)));
            step.set("response", ShareGroupHeartbeatResponseDataJsonConverter.write(result.response().getKey(), number));
        } else if (api.equals("AlterShareGroupOffsets")) {
            var data = AlterShareGroupOffsetsRequestDataJsonConverter.read(request.get("data"), number);
            var result = manager.alterShareGroupOffsets(data.groupId(), data.topics());
            write(step, result);
            var asked = asked(result.response().getValue());
            if (!asked.isEmpty()) step.set("initialize_share_group_state", asked);
            step.set("response", AlterShareGroupOffsetsResponseDataJsonConverter.write(result.response().getKey(), number));
        } else {
            var data = DeleteShareGroupOffsetsRequestDataJsonConverter.read(request.get("data"), number);
            ShareGroup group = manager.shareGroup(data.groupId());
            group.validateDeleteGroup();
            List<DeleteShareGroupOffsetsResponseData.DeleteShareGroupOffsetsResponseTopic> errors = new ArrayList<>();
            List<CoordinatorRecord> records = new ArrayList<>();
            var asked = manager.sharePartitionsEligibleForOffsetDeletion(data.groupId(), data, errors, records);
            write(step, new CoordinatorResult<Void, CoordinatorRecord>(records));
            if (!asked.isEmpty()) {
                ArrayNode topics = step.putArray("delete_share_group_state");
                asked.forEach(topic -> {
                    ArrayNode numbers = topics.addObject().put("topic_id", topic.topicId().toString()).putArray("partitions");
                    topic.partitions().forEach(each -> numbers.add(each.partition()));
                });
            }
            step.set("response", DeleteShareGroupOffsetsResponseDataJsonConverter.write(
                new DeleteShareGroupOffsetsResponseData().setResponses(errors), number));
        }
    }

    private static ArrayNode asked(InitializeShareGroupStateParameters parameters) {
        ArrayNode topics = JSON.createArrayNode();
        parameters.groupTopicPartitionData().topicsData().forEach(topic -> {
            ArrayNode states = topics.addObject().put("topic_id", topic.topicId().toString()).putArray("partitions");
            topic.partitions().forEach(each -> states.addObject().put("partition", each.partition())
                .put("state_epoch", each.stateEpoch()).put("start_offset", each.startOffset()));
        });
        return topics;
    }

    private static void advance(ObjectNode step) {
        long until = clock.ms + step.get("ms").asLong();
        step.put("t_end_ms", until);
        ArrayNode fired = step.putArray("timers");
        while (true) {
            Optional<Armed> due = timers.values().stream().filter(each -> each.deadline() <= until)
                .min(Comparator.comparingLong(Armed::deadline).thenComparing(Armed::key));
            if (due.isEmpty()) break;
            timers.remove(due.get().key());
            clock.ms = due.get().deadline();
            ObjectNode line = fired.addObject().put("key", due.get().key()).put("deadline_ms", clock.ms).put("t_ms", clock.ms);
            write(line, due.get().operation().generateRecords());
        }
        clock.ms = until;
    }

    private static void metadata(ObjectNode step) {
        MetadataDelta delta = new MetadataDelta.Builder().setImage(image).build();
        JsonNode change = step.get("metadata");
        change.get("created").forEach(topic -> create(delta, topic, 0));
        change.get("changed").forEach(topic -> create(delta, topic,
            image.topics().getTopic(topic.get("name").asText()).partitions().size()));
        change.get("deleted").forEach(topic -> delta.replay(new RemoveTopicRecord().setTopicId(Uuid.fromString(topic.get("id").asText()))));
        version++;
        ((ObjectNode) change).put("image_version", version);
        image = delta.apply(new MetadataProvenance(version, 0, 0, true));
        manager.onMetadataUpdate(new KRaftCoordinatorMetadataDelta(delta), new KRaftCoordinatorMetadataImage(image));
    }

    private static void write(ObjectNode step, CoordinatorResult<?, CoordinatorRecord> result) {
        ArrayNode records = step.putArray("records");
        GroupCoordinatorRecordSerde serde = new GroupCoordinatorRecordSerde();
        for (CoordinatorRecord record : result.records()) {
            CoordinatorRecordType type = CoordinatorRecordType.fromId(record.key().apiKey());
            ObjectNode one = records.addObject().put("key_type", type.id()).put("name", type.name());
            one.set("key", CoordinatorRecordJsonConverters.writeRecordKeyAsJson(record.key()));
            if (record.value() == null) {
                one.putNull("value_version").putNull("value");
            } else {
                one.put("value_version", record.value().version());
                one.set("value", CoordinatorRecordJsonConverters.writeRecordValueAsJson(record.value().message(), record.value().version()));
            }
            one.put("key_hex", HexFormat.of().formatHex(serde.serializeKey(record)));
            byte[] value = serde.serializeValue(record);
            one.put("value_hex", value == null ? null : HexFormat.of().formatHex(value));
            log.add(record);
            replay(record);
        }
        if (result.appendFuture() != null) result.appendFuture().complete(null);
    }

    private static void replay(CoordinatorRecord record) {
        ApiMessage value = record.value() == null ? null : record.value().message();
        ApiMessage key = record.key();
        if (key instanceof ShareGroupMemberMetadataKey each) manager.replay(each, (ShareGroupMemberMetadataValue) value);
        else if (key instanceof ShareGroupMetadataKey each) manager.replay(each, (ShareGroupMetadataValue) value);
        else if (key instanceof ShareGroupTargetAssignmentMetadataKey each) manager.replay(each, (ShareGroupTargetAssignmentMetadataValue) value);
        else if (key instanceof ShareGroupTargetAssignmentMemberKey each) manager.replay(each, (ShareGroupTargetAssignmentMemberValue) value);
        else if (key instanceof ShareGroupCurrentMemberAssignmentKey each) manager.replay(each, (ShareGroupCurrentMemberAssignmentValue) value);
        else if (key instanceof ShareGroupStatePartitionMetadataKey each) manager.replay(each, (ShareGroupStatePartitionMetadataValue) value);
        else throw new IllegalStateException(record.toString());
    }

    private static JsonNode after() {
        try {
            ShareGroup group = manager.shareGroup(GROUP);
            return JSON.createObjectNode().put("type", "share").put("state", group.stateAsString()).put("group_epoch", group.groupEpoch())
                .put("assignment_epoch", group.assignmentEpoch()).put("metadata_hash", group.metadataHash()).put("members", group.members().size());
        } catch (ApiException none) {
            return JSON.nullNode();
        }
    }
}
