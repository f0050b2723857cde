package kafka.server.share;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.OptionalLong;
import java.util.Properties;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ExecutionException;
import java.util.function.Supplier;
import kafka.server.ReplicaManager;
import org.apache.kafka.clients.consumer.internals.ShareAcquireMode;
import org.apache.kafka.common.TopicIdPartition;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.config.AbstractConfig;
import org.apache.kafka.common.message.DeleteShareGroupStateRequestData;
import org.apache.kafka.common.message.FetchResponseData;
import org.apache.kafka.common.message.InitializeShareGroupStateRequestData;
import org.apache.kafka.common.message.ReadShareGroupStateRequestData;
import org.apache.kafka.common.message.WriteShareGroupStateRequestData;
import org.apache.kafka.common.metadata.PartitionRecord;
import org.apache.kafka.common.metadata.TopicRecord;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.MemoryRecordsBuilder;
import org.apache.kafka.common.record.internal.RecordBatch;
import org.apache.kafka.common.utils.LogContext;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.common.utils.Utils;
import org.apache.kafka.coordinator.common.runtime.CoordinatorRecord;
import org.apache.kafka.coordinator.common.runtime.CoordinatorResult;
import org.apache.kafka.coordinator.common.runtime.KRaftCoordinatorMetadataImage;
import org.apache.kafka.coordinator.group.GroupConfigManager;
import org.apache.kafka.coordinator.group.GroupCoordinatorConfig;
import org.apache.kafka.coordinator.group.modern.share.ShareGroupConfig;
import org.apache.kafka.coordinator.share.ShareCoordinatorConfig;
import org.apache.kafka.coordinator.share.ShareCoordinatorShard;
import org.apache.kafka.coordinator.share.generated.CoordinatorRecordJsonConverters;
import org.apache.kafka.coordinator.share.metrics.ShareCoordinatorMetrics;
import org.apache.kafka.image.MetadataDelta;
import org.apache.kafka.image.MetadataImage;
import org.apache.kafka.image.MetadataProvenance;
import org.apache.kafka.server.share.acknowledge.ShareAcknowledgementBatch;
import org.apache.kafka.server.share.fetch.DelayedShareFetchKey;
import org.apache.kafka.server.share.fetch.InFlightState;
import org.apache.kafka.server.share.fetch.ShareAcquiredRecords;
import org.apache.kafka.server.share.persister.*;
import org.apache.kafka.server.storage.log.FetchIsolation;
import org.apache.kafka.server.storage.log.FetchPartitionData;
import org.apache.kafka.server.util.timer.Timer;
import org.apache.kafka.server.util.timer.TimerTask;
import org.apache.kafka.server.util.timer.TimerTaskEntry;
import org.apache.kafka.timeline.SnapshotRegistry;

/**
 * Drives the leader of a share partition and the share coordinator of Apache Kafka with a script (JSON lines on standard
 * input, a header first), and writes each line with what they made of it: answers, records of state, records in flight.
 */
public final class ShareLeaders {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final String GROUP = "g1";
    private static final Uuid TOPIC = new Uuid(1, 1);

    private static final class Clock implements Time {
        private long ms;
        public long milliseconds() { return ms; }
        public long nanoseconds() { return ms * 1_000_000; }
        public void sleep(long each) { ms += each; }
        public void waitObject(Object object, Supplier<Boolean> condition, long deadline) { }
        public <T> T waitForFuture(CompletableFuture<T> future, long deadline) { throw new UnsupportedOperationException(); }
    }

    private record Armed(long deadline, long turn, TimerTask task) { }

    /** Locks that end at one time end in the order in which they began. */
    private static final class Timers implements Timer {
        private final List<Armed> armed = new ArrayList<>();
        private long turn;
        public void add(TimerTask task) {
            new TimerTaskEntry(task, clock.ms + task.delayMs);
            armed.add(new Armed(clock.ms + task.delayMs, turn++, task));
        }
        public boolean advanceClock(long timeout) { return false; }
        public int size() { return armed.size(); }
        public void close() { }
        private void runUntil(long until) {
            while (true) {
                armed.removeIf(each -> each.task.isCancelled());
                Optional<Armed> due = armed.stream().filter(each -> each.deadline <= until)
                    .min(Comparator.comparingLong(Armed::deadline).thenComparing(Armed::turn));
                if (due.isEmpty()) break;
                armed.remove(due.get());
                clock.ms = Math.max(clock.ms, due.get().deadline);
                due.get().task.run();
            }
            clock.ms = until;
        }
    }

    private static final Clock clock = new Clock();
    private static Timers timers = new Timers();
    private static ShareCoordinatorShard shard;
    private static SharePartition leader;
    private static GroupConfigManager groups;
    private static int limit, locks, lockMs;
    private static FetchIsolation isolation;
    private static final List<long[]> log = new ArrayList<>();
    private static ArrayNode records;

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String text = in.readLine(); text != null; text = in.readLine()) {
            ObjectNode line = (ObjectNode) JSON.readTree(text);
            if (line.get("op").asText().equals("header")) {
                begin(line);
            } else {
                records = line.putArray("records");
                try {
                    run(line);
                } catch (IllegalArgumentException | IllegalStateException | NullPointerException error) {
                    line.put("failed", error.toString());
                }
                after(line);
            }
            System.out.println(JSON.writeValueAsString(line));
        }
    }

    private static void begin(ObjectNode header) throws Exception {
        clock.ms = header.get("start_ms").asLong();
        timers = new Timers();
        leader = null;
        isolation = FetchIsolation.HIGH_WATERMARK;
        log.clear();
        limit = header.get("delivery_limit").asInt();
        locks = header.get("most_locks").asInt();
        lockMs = header.get("lock_ms").asInt();
        var configs = new AbstractConfig(Utils.mergeConfigs(List.of(GroupCoordinatorConfig.CONFIG_DEF, ShareGroupConfig.CONFIG_DEF)), Map.of(), false);
        groups = new GroupConfigManager(Map.of(), new GroupCoordinatorConfig(configs), new ShareGroupConfig(configs));
        ShareCoordinatorConfig config = new ShareCoordinatorConfig(new AbstractConfig(ShareCoordinatorConfig.CONFIG_DEF, Map.of(
            ShareCoordinatorConfig.SNAPSHOT_UPDATE_RECORDS_PER_SNAPSHOT_CONFIG, header.get("snapshot_updates").asText(),
            ShareCoordinatorConfig.COLD_PARTITION_SNAPSHOT_INTERVAL_MS_CONFIG, header.get("cold_ms").asText()), false));
        LogContext context = new LogContext();
        SnapshotRegistry registry = new SnapshotRegistry(context);
        ShareCoordinatorMetrics metrics = new ShareCoordinatorMetrics();
        shard = new ShareCoordinatorShard.Builder(config).withLogContext(context).withSnapshotRegistry(registry).withTime(clock)
            .withTopicPartition(new TopicPartition("__share_group_state", 0)).withCoordinatorMetrics(metrics).build();
        MetadataDelta delta = new MetadataDelta.Builder().setImage(MetadataImage.EMPTY).build();
        delta.replay(new TopicRecord().setName("orders").setTopicId(TOPIC));
        delta.replay(new PartitionRecord().setTopicId(TOPIC).setPartitionId(0).setReplicas(List.of(0)).setIsr(List.of(0)).setLeader(0));
        shard.onLoaded(new KRaftCoordinatorMetadataImage(delta.apply(new MetadataProvenance(1, 0, 0, true))));
    }

    private static void run(ObjectNode line) throws Exception {
        switch (line.get("op").asText()) {
            case "initialize" -> {
                var data = new InitializeShareGroupStateRequestData.PartitionData().setPartition(0)
                    .setStateEpoch(line.get("state_epoch").asInt()).setStartOffset(line.get("start_offset").asLong());
                var result = shard.initializeState(new InitializeShareGroupStateRequestData().setGroupId(GROUP).setTopics(List.of(
                    new InitializeShareGroupStateRequestData.InitializeStateData().setTopicId(TOPIC).setPartitions(List.of(data)))));
                written(result);
                error(line, result.response().results().get(0).partitions().get(0).errorCode());
            }
            case "delete" -> written(shard.deleteState(new DeleteShareGroupStateRequestData().setGroupId(GROUP).setTopics(List.of(
                new DeleteShareGroupStateRequestData.DeleteStateData().setTopicId(TOPIC).setPartitions(List.of(
                    new DeleteShareGroupStateRequestData.PartitionData().setPartition(0)))))));
            case "cold" -> written(shard.snapshotColdPartitions());
            case "lead" -> {
                timers = new Timers();
                leader = new SharePartition(GROUP, new TopicIdPartition(TOPIC, 0, "orders"), line.get("leader_epoch").asInt(), locks, limit,
                    lockMs, timers, clock, new State(), REPLICAS, groups, null);
                if (!await(line, leader.maybeInitialize())) leader = null;
            }
            case "produce" -> log.add(new long[] {line.get("first").asLong(), line.get("last").asLong(), line.path("aborted").asBoolean() ? 1 : 0});
            case "compact" -> log.removeIf(each -> each[0] == line.get("first").asLong());
            case "delete_records" -> {
                long before = line.get("before").asLong();
                log.removeIf(each -> each[1] < before);
                if (leader != null) leader.updateCacheAndOffsets(before);
            }
            case "advance" -> timers.runUntil(clock.ms + line.get("ms").asLong());
            case "settings" -> {
                Properties settings = new Properties();
                line.get("settings").fields().forEachRemaining(each -> settings.put(each.getKey(), each.getValue().asText()));
                isolation = "read_committed".equals(settings.get("share.isolation.level")) ? FetchIsolation.TXN_COMMITTED : FetchIsolation.HIGH_WATERMARK;
                groups.updateGroupConfig(GROUP, settings);
            }
            case "fetch" -> fetch(line);
            case "acknowledge" -> {
                List<ShareAcknowledgementBatch> batches = new ArrayList<>();
                line.get("batches").forEach(each -> {
                    List<Byte> types = new ArrayList<>();
                    each.get(2).forEach(type -> types.add((byte) type.asInt()));
                    batches.add(new ShareAcknowledgementBatch(each.get(0).asLong(), each.get(1).asLong(), types));
                });
                await(line, leader.acknowledge(line.get("member").asText(), batches));
            }
            case "release" -> await(line, leader.releaseAcquiredRecords(line.get("member").asText()));
            default -> throw new IllegalArgumentException(line.get("op").asText());
        }
    }

    private static void fetch(ObjectNode line) {
        line.put("may_acquire", leader.canAcquireRecords());
        long from = leader.nextFetchOffset();
        line.put("next_fetch_offset", from);
        ByteBuffer buffer = ByteBuffer.allocate(1 << 20);
        int left = line.get("batches").asInt();
        List<FetchResponseData.AbortedTransaction> aborted = new ArrayList<>();
        for (long[] each : log) {
            if (each[1] >= from && left-- > 0) {
                boolean isAborted = each[2] == 1;
                // Each aborted batch has a producer of its own, so that no abort marker has to end its transaction.
                long producer = isAborted ? each[0] + 1 : RecordBatch.NO_PRODUCER_ID;
                if (isAborted) aborted.add(new FetchResponseData.AbortedTransaction().setProducerId(producer).setFirstOffset(each[0]));
                MemoryRecordsBuilder builder = MemoryRecords.builder(buffer, RecordBatch.CURRENT_MAGIC_VALUE, Compression.NONE, TimestampType.CREATE_TIME, each[0],
                    0, producer, (short) (isAborted ? 0 : -1), isAborted ? 0 : -1, isAborted, 0);
                for (long offset = each[0]; offset <= each[1]; offset++) builder.appendWithOffset(offset, 0, null, new byte[1]);
                builder.build();
                buffer = builder.buffer();
            }
        }
        buffer.flip();
        FetchPartitionData data = new FetchPartitionData(Errors.NONE, 0, 0, MemoryRecords.readableRecords(buffer), Optional.empty(),
            OptionalLong.empty(), Optional.of(aborted), OptionalInt.empty(), false);
        ShareAcquiredRecords acquired = leader.acquire(line.get("member").asText(),
            line.get("is_strict").asBoolean() ? ShareAcquireMode.RECORD_LIMIT : ShareAcquireMode.BATCH_OPTIMIZED,
            line.get("batch_size").asInt(), line.get("most_records").asInt(), from, data, isolation);
        ArrayNode deliveries = line.putArray("deliveries");
        acquired.acquiredRecords().forEach(each -> deliveries.addArray().add(each.firstOffset()).add(each.lastOffset()).add(each.deliveryCount()));
    }

    private static boolean await(ObjectNode line, CompletableFuture<Void> done) throws Exception {
        try {
            done.get();
            line.putNull("error");
            return true;
        } catch (ExecutionException error) {
            Throwable cause = error.getCause();
            while (cause instanceof CompletionException || cause instanceof IllegalStateException && cause.getCause() != null) cause = cause.getCause();
            line.put("error", Errors.forException(cause).name());
            return false;
        }
    }

    private static void error(ObjectNode line, short code) {
        line.put("error", code == 0 ? null : Errors.forCode(code).name());
    }

    private static void written(CoordinatorResult<?, CoordinatorRecord> result) {
        for (CoordinatorRecord record : result.records()) {
            shard.replay(0, -1, (short) -1, record);
            ObjectNode one = records.addObject().put("type", record.key().apiKey());
            one.set("value", record.value() == null ? null
                : CoordinatorRecordJsonConverters.writeRecordValueAsJson(record.value().message(), record.value().version()));
        }
    }

    private static void after(ObjectNode line) {
        if (leader == null) {
            line.putNull("after");
            return;
        }
        ObjectNode after = line.putObject("after").put("start_offset", leader.startOffset()).put("end_offset", leader.endOffset())
            .put("delivery_complete_count", leader.deliveryCompleteCount());
        ArrayNode flight = after.putArray("in_flight");
        leader.cachedState().values().forEach(batch -> {
            ArrayNode one = flight.addArray().add(batch.firstOffset()).add(batch.lastOffset());
            ArrayNode states = one.addArray();
            if (batch.offsetState() == null) {
                states.addArray().add(batch.batchState().id()).add(batch.batchDeliveryCount()).add(batch.batchMemberId());
            } else {
                for (InFlightState each : batch.offsetState().values()) {
                    states.addArray().add(each.state().id()).add(each.deliveryCount()).add(each.memberId());
                }
            }
        });
    }

    /** The share coordinator, which answers at once. */
    private static final class State implements Persister {
        public CompletableFuture<ReadShareGroupStateResult> readState(ReadShareGroupStateParameters parameters) {
            var data = parameters.groupTopicPartitionData().topicsData().get(0).partitions().get(0);
            var result = shard.readStateAndMaybeUpdateLeaderEpoch(new ReadShareGroupStateRequestData().setGroupId(GROUP).setTopics(List.of(
                new ReadShareGroupStateRequestData.ReadStateData().setTopicId(TOPIC).setPartitions(List.of(
                    new ReadShareGroupStateRequestData.PartitionData().setPartition(0).setLeaderEpoch(data.leaderEpoch()))))));
            written(result);
            return CompletableFuture.completedFuture(ReadShareGroupStateResult.from(result.response()));
        }
        public CompletableFuture<WriteShareGroupStateResult> writeState(WriteShareGroupStateParameters parameters) {
            var data = parameters.groupTopicPartitionData().topicsData().get(0).partitions().get(0);
            var result = shard.writeState(new WriteShareGroupStateRequestData().setGroupId(GROUP).setTopics(List.of(
                new WriteShareGroupStateRequestData.WriteStateData().setTopicId(TOPIC).setPartitions(List.of(
                    new WriteShareGroupStateRequestData.PartitionData().setPartition(0).setStateEpoch(data.stateEpoch())
                        .setLeaderEpoch(data.leaderEpoch()).setStartOffset(data.startOffset()).setDeliveryCompleteCount(data.deliveryCompleteCount())
                        .setStateBatches(data.stateBatches().stream().map(each -> new WriteShareGroupStateRequestData.StateBatch()
                            .setFirstOffset(each.firstOffset()).setLastOffset(each.lastOffset()).setDeliveryState(each.deliveryState())
                            .setDeliveryCount(each.deliveryCount())).toList()))))));
            written(result);
            return CompletableFuture.completedFuture(WriteShareGroupStateResult.from(result.response()));
        }
        public CompletableFuture<InitializeShareGroupStateResult> initializeState(InitializeShareGroupStateParameters parameters) { throw new UnsupportedOperationException(); }
        public CompletableFuture<DeleteShareGroupStateResult> deleteState(DeleteShareGroupStateParameters parameters) { throw new UnsupportedOperationException(); }
        public CompletableFuture<ReadShareGroupStateSummaryResult> readSummary(ReadShareGroupStateSummaryParameters parameters) { throw new UnsupportedOperationException(); }
        public void stop() { }
    }

    /** A broker's replicas without any: the leader of a share partition only tells it that waiting fetches may go on. */
    private static final class NoReplicas extends ReplicaManager {
        private NoReplicas() {
            super(null, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null);
        }
        @Override
        public void completeDelayedShareFetchRequest(DelayedShareFetchKey key) { }
    }

    private static final ReplicaManager REPLICAS = noReplicas();

    private static ReplicaManager noReplicas() {
        try {
            var field = sun.misc.Unsafe.class.getDeclaredField("theUnsafe");
            field.setAccessible(true);
            return (ReplicaManager) ((sun.misc.Unsafe) field.get(null)).allocateInstance(NoReplicas.class);
        } catch (ReflectiveOperationException error) {
            throw new IllegalStateException(error);
        }
    }
}
