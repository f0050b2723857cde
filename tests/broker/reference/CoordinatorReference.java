package org.apache.kafka.coordinator.group;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.reflect.Field;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.net.InetAddress;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Deque;
import java.util.HashMap;
import java.util.HashSet;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.Properties;
import java.util.Set;
import java.util.concurrent.AbstractExecutorService;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ConcurrentLinkedDeque;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.config.AbstractConfig;
import org.apache.kafka.common.message.ConsumerGroupDescribeResponseData;
import org.apache.kafka.common.message.ConsumerGroupHeartbeatRequestData;
import org.apache.kafka.common.message.DeleteGroupsResponseData;
import org.apache.kafka.common.message.DescribeGroupsResponseData;
import org.apache.kafka.common.message.HeartbeatRequestData;
import org.apache.kafka.common.message.JoinGroupRequestData;
import org.apache.kafka.common.message.LeaveGroupRequestData;
import org.apache.kafka.common.message.ListGroupsRequestData;
import org.apache.kafka.common.message.OffsetCommitRequestData;
import org.apache.kafka.common.message.OffsetCommitResponseData;
import org.apache.kafka.common.message.OffsetDeleteRequestData;
import org.apache.kafka.common.message.OffsetFetchRequestData;
import org.apache.kafka.common.message.OffsetFetchResponseData;
import org.apache.kafka.common.message.ShareGroupDescribeResponseData;
import org.apache.kafka.common.message.ShareGroupHeartbeatRequestData;
import org.apache.kafka.common.message.ShareGroupHeartbeatResponseData;
import org.apache.kafka.common.message.StreamsGroupDescribeResponseData;
import org.apache.kafka.common.message.StreamsGroupHeartbeatRequestData;
import org.apache.kafka.common.message.SyncGroupRequestData;
import org.apache.kafka.common.message.TxnOffsetCommitRequestData;
import org.apache.kafka.common.metadata.PartitionRecord;
import org.apache.kafka.common.metadata.RemoveTopicRecord;
import org.apache.kafka.common.metadata.TopicRecord;
import org.apache.kafka.common.network.ClientInformation;
import org.apache.kafka.common.network.ListenerName;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.Record;
import org.apache.kafka.common.record.internal.RecordBatch;
import org.apache.kafka.common.requests.LeaveGroupResponse;
import org.apache.kafka.common.requests.OffsetFetchResponse;
import org.apache.kafka.common.requests.RequestContext;
import org.apache.kafka.common.requests.RequestHeader;
import org.apache.kafka.common.requests.TransactionResult;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.common.security.auth.SecurityProtocol;
import org.apache.kafka.common.utils.BufferSupplier;
import org.apache.kafka.common.utils.LogContext;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.common.utils.Utils;
import org.apache.kafka.coordinator.common.runtime.CoordinatorEvent;
import org.apache.kafka.coordinator.common.runtime.CoordinatorEventProcessor;
import org.apache.kafka.coordinator.common.runtime.CoordinatorLoader;
import org.apache.kafka.coordinator.common.runtime.CoordinatorPlayback;
import org.apache.kafka.coordinator.common.runtime.CoordinatorRecord;
import org.apache.kafka.coordinator.common.runtime.CoordinatorResult;
import org.apache.kafka.coordinator.common.runtime.CoordinatorRuntime;
import org.apache.kafka.coordinator.common.runtime.CoordinatorRuntimeMetrics;
import org.apache.kafka.coordinator.common.runtime.PartitionWriter;
import org.apache.kafka.coordinator.group.metrics.GroupCoordinatorMetrics;
import org.apache.kafka.coordinator.group.modern.share.ShareGroupConfig;
import org.apache.kafka.image.MetadataDelta;
import org.apache.kafka.image.MetadataImage;
import org.apache.kafka.image.MetadataProvenance;
import org.apache.kafka.server.share.persister.NoOpStatePersister;
import org.apache.kafka.server.util.timer.Timer;
import org.apache.kafka.server.util.timer.TimerTask;
import org.apache.kafka.server.util.timer.TimerTaskEntry;
import org.apache.kafka.storage.internals.log.LogConfig;
import org.apache.kafka.storage.internals.log.VerificationGuard;

/**
 * The group coordinator service of Apache Kafka with its runtime, in one thread, with a clock, timers and a log of its
 * own. Standard input has one operation a line as JSON; the answer to each is one line: what was answered and written.
 */
public final class CoordinatorReference {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final TopicPartition PARTITION = new TopicPartition("__consumer_offsets", 0);
    private static final String MESSAGES = "org.apache.kafka.common.message.";
    private static final Set<String> HOUSEKEEPING = Set.of("expire-group-metadata", "group-size-counter");

    private static final class Clock implements Time {
        private long ms;
        public long milliseconds() { return ms; }
        public long nanoseconds() { return ms * 1_000_000; }
        public void sleep(long each) { ms += each; }
        public void waitObject(Object object, Supplier<Boolean> condition, long deadline) { }
        public <T> T waitForFuture(CompletableFuture<T> future, long deadline) { throw new UnsupportedOperationException(); }
    }

    private static final Clock clock = new Clock();

    /** Timers of groups by key; those of the runtime itself (write timeouts) never end. */
    private static final class Timers implements Timer {
        private final List<TimerTaskEntry> entries = new ArrayList<>();
        public void add(TimerTask task) { entries.add(new TimerTaskEntry(task, clock.ms + task.delayMs)); }
        public boolean advanceClock(long timeoutMs) { return false; }
        public int size() { return entries.size(); }
        public void close() { }
        Map<String, TimerTaskEntry> armed() {
            entries.removeIf(TimerTaskEntry::cancelled);
            Map<String, TimerTaskEntry> named = new LinkedHashMap<>();
            for (TimerTaskEntry each : entries) {
                String key = (String) capturedOrNull(each.timerTask, "val$key");
                if (key != null && !HOUSEKEEPING.contains(key)) named.put(key, each);
            }
            return named;
        }
    }

    private static final class Events implements CoordinatorEventProcessor {
        private final Deque<CoordinatorEvent> waiting = new ConcurrentLinkedDeque<>();
        public void enqueueLast(CoordinatorEvent event) { waiting.addLast(event); }
        public void enqueueFirst(CoordinatorEvent event) { waiting.addFirst(event); }
        public void close() { }
        void drain() {
            while (!waiting.isEmpty()) {
                CoordinatorEvent event = waiting.removeFirst();
                try {
                    event.run();
                } catch (Throwable failure) {
                    event.complete(failure);
                }
            }
        }
    }

    private static final class Background extends AbstractExecutorService {
        private final List<Runnable> waiting = new ArrayList<>();
        public void execute(Runnable task) { waiting.add(task); }
        public void shutdown() { }
        public List<Runnable> shutdownNow() { return List.of(); }
        public boolean isShutdown() { return false; }
        public boolean isTerminated() { return false; }
        public boolean awaitTermination(long timeout, TimeUnit unit) { return true; }
    }

    private record Logged(long offset, CoordinatorRecord record, long producerId, short producerEpoch, TransactionResult end) { }

    /** The log: what is appended is committed at once. */
    private static final class Log implements PartitionWriter {
        private final List<Logged> records = new ArrayList<>();
        private final List<Logged> written = new ArrayList<>();
        private Listener listener;
        private long end;
        public void registerListener(TopicPartition partition, Listener given) { listener = given; }
        public void deregisterListener(TopicPartition partition, Listener given) { listener = null; }
        public LogConfig config(TopicPartition partition) { return new LogConfig(new Properties()); }
        public long append(TopicPartition partition, VerificationGuard guard, MemoryRecords batches, short version) {
            GroupCoordinatorRecordSerde serde = new GroupCoordinatorRecordSerde();
            for (RecordBatch batch : batches.batches()) {
                for (Record record : batch) {
                    long offset = end++;
                    if (batch.isControlBatch()) {
                        records.add(new Logged(offset, null, batch.producerId(), batch.producerEpoch(), ending));
                        continue;
                    }
                    ByteBuffer value = record.hasValue() ? record.value() : null;
                    Logged logged = new Logged(offset, serde.deserialize(record.key(), value), batch.producerId(), batch.producerEpoch(), null);
                    records.add(logged);
                    written.add(logged);
                }
            }
            Listener told = listener;
            long highWatermark = end;
            committed.add(() -> told.onHighWatermarkUpdated(PARTITION, highWatermark));
            return end;
        }
        public CompletableFuture<VerificationGuard> maybeStartTransactionVerification(
            TopicPartition partition, String transactionalId, long producerId, short producerEpoch, int version) {
            return CompletableFuture.completedFuture(VerificationGuard.SENTINEL);
        }
        public CompletableFuture<Void> deleteRecords(TopicPartition partition, long before) { return CompletableFuture.completedFuture(null); }
    }

    private static final List<Runnable> committed = new ArrayList<>();
    private static TransactionResult ending;

    private record Waiting(int correlation, String api, short version, CompletableFuture<?> future) { }

    private static Timers timers;
    private static Events events;
    private static Background background;
    private static Log log;
    private static List<Waiting> waiting = new ArrayList<>();
    private static GroupCoordinatorConfig config;
    private static GroupConfigManager groupConfigs;
    private static CoordinatorRuntime<GroupCoordinatorShard, CoordinatorRecord> runtime;
    private static GroupCoordinatorService service;
    private static MetadataImage image;
    private static int epoch;
    private static boolean loadingHangs;

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String text = in.readLine(); text != null; text = in.readLine()) {
            ObjectNode step = (ObjectNode) JSON.readTree(text);
            ObjectNode answer = JSON.createObjectNode();
            try {
                run(step, answer);
                settle();
                collect(answer);
            } catch (Throwable failure) {
                answer.put("failure", String.valueOf(failure.getCause() == null ? failure : failure.getCause()));
            }
            System.out.println(JSON.writeValueAsString(answer));
        }
    }

    private static void run(ObjectNode step, ObjectNode answer) throws Exception {
        if (step.has("now")) clock.ms = step.get("now").asLong();
        switch (step.get("op").asText()) {
            case "begin" -> begin(step);
            case "topics" -> topics(step);
            case "group_config" -> {
                Properties properties = new Properties();
                step.get("settings").properties().forEach(each -> properties.put(each.getKey(), each.getValue().asText()));
                service.updateGroupConfig(step.get("group").asText(), properties);
            }
            case "request" -> request(step, answer);
            case "expire" -> {
                TimerTaskEntry entry = timers.armed().get(step.get("key").asText());
                if (entry == null) throw new IllegalStateException("no timer " + step.get("key"));
                timers.entries.remove(entry);
                entry.timerTask.run();
            }
            case "background" -> {
                List<Runnable> tasks = new ArrayList<>(background.waiting);
                background.waiting.clear();
                tasks.forEach(Runnable::run);
            }
            case "clean" -> runtime.scheduleWriteOperation("clean", PARTITION, GroupCoordinatorShard::cleanupGroupMetadata);
            case "share_initialized" -> share(step, true);
            case "share_not_initialized" -> share(step, false);
            case "delete" -> answer(answer, "DeleteGroups", (short) 2, service.deleteGroups(
                context(ApiKeys.DELETE_GROUPS, (short) 2, "admin", 0), List.of(step.get("group").asText()), BufferSupplier.NO_CACHING)
                .thenApply(results -> new DeleteGroupsResponseData().setResults(results)));
            case "describe" -> describe(step, answer);
            case "end_transaction" -> {
                ending = step.get("committed").asBoolean() ? TransactionResult.COMMIT : TransactionResult.ABORT;
                service.completeTransaction(PARTITION, step.get("producer").asLong(), (short) 0, 0, ending, (short) 1);
            }
            case "resign" -> service.onResignation(0, OptionalInt.of(++epoch));
            case "loading" -> {
                start();
                loadingHangs = true;
            }
            case "fail_over" -> start();
            default -> throw new IllegalArgumentException(step.get("op").asText());
        }
    }

    private static void begin(JsonNode step) throws Exception {
        Map<String, String> settings = new HashMap<>();
        step.get("config").properties().forEach(each -> settings.put(each.getKey(), each.getValue().asText()));
        settings.put("group.coordinator.append.linger.ms", "0");
        config = new GroupCoordinatorConfig(new AbstractConfig(GroupCoordinatorConfig.CONFIG_DEF, settings, false));
        groupConfigs = new GroupConfigManager(Map.of(), config, new ShareGroupConfig(new AbstractConfig(
            Utils.mergeConfigs(List.of(GroupCoordinatorConfig.CONFIG_DEF, ShareGroupConfig.CONFIG_DEF)), settings, false)));
        image = MetadataImage.EMPTY;
        log = new Log();
        start();
    }

    /** A coordinator that knows nothing but the log. */
    private static void start() {
        timers = new Timers();
        events = new Events();
        background = new Background();
        waiting = new ArrayList<>();
        committed.clear();
        loadingHangs = false;
        GroupCoordinatorMetrics metrics = new GroupCoordinatorMetrics();
        List<Logged> records = new ArrayList<>(log.records);
        CoordinatorLoader<CoordinatorRecord> loader = new CoordinatorLoader<>() {
            public CompletableFuture<LoadSummary> load(TopicPartition partition, CoordinatorPlayback<CoordinatorRecord> playback) {
                if (loadingHangs) return new CompletableFuture<>();
                for (Logged each : records) {
                    if (each.end() != null) playback.replayEndTransactionMarker(each.producerId(), each.producerEpoch(), each.end());
                    else playback.replay(each.offset(), each.producerId(), each.producerEpoch(), each.record());
                }
                if (log.end > 0) {
                    playback.updateLastWrittenOffset(log.end);
                    playback.updateLastCommittedOffset(log.end);
                }
                return CompletableFuture.completedFuture(new LoadSummary(0, 0, 0, records.size(), 0));
            }
            public void close() { }
        };
        runtime = new CoordinatorRuntime.Builder<GroupCoordinatorShard, CoordinatorRecord>()
            .withTime(clock).withTimer(timers).withLogPrefix("").withLogContext(new LogContext())
            .withEventProcessor(events).withPartitionWriter(log).withLoader(loader)
            .withCoordinatorShardBuilderSupplier(() -> new GroupCoordinatorShard.Builder(config, groupConfigs).withAuthorizerPlugin(Optional.empty()))
            .withWriteTimeout(Duration.ofMillis(Integer.MAX_VALUE)).withCoordinatorRuntimeMetrics(noMetrics())
            .withCoordinatorMetrics(metrics).withSerializer(new GroupCoordinatorRecordSerde()).withCompression(Compression.NONE)
            .withAppendLingerMs(OptionalInt.of(0)).withExecutorService(background).withCachedBufferMaxBytesSupplier(() -> 1 << 20)
            .build();
        service = new GroupCoordinatorService(new LogContext(), config, runtime, metrics, groupConfigs, new NoOpStatePersister(), timers, null);
        service.startup(() -> 1);
        service.onMetadataUpdate(new MetadataDelta.Builder().setImage(image).build(), image);
        service.onElection(0, ++epoch);
    }

    private static CoordinatorRuntimeMetrics noMetrics() {
        return (CoordinatorRuntimeMetrics) java.lang.reflect.Proxy.newProxyInstance(CoordinatorReference.class.getClassLoader(),
            new Class<?>[] {CoordinatorRuntimeMetrics.class}, (proxy, method, given) -> null);
    }

    private static void topics(JsonNode step) throws InterruptedException {
        MetadataDelta delta = new MetadataDelta.Builder().setImage(image).build();
        step.get("deleted").forEach(topic -> delta.replay(new RemoveTopicRecord().setTopicId(Uuid.fromString(topic.asText()))));
        step.get("created").forEach(topic -> {
            Uuid id = Uuid.fromString(topic.get("id").asText());
            int first = topic.get("from").asInt();
            if (first == 0) delta.replay(new TopicRecord().setName(topic.get("name").asText()).setTopicId(id));
            for (int number = first; number < topic.get("partitions").asInt(); number++) {
                delta.replay(new PartitionRecord().setTopicId(id).setPartitionId(number).setReplicas(List.of(0)).setIsr(List.of(0)).setLeader(0));
            }
        });
        image = delta.apply(new MetadataProvenance(step.get("version").asLong(), 0, 0, true));
        // The service waits until offsets of deleted topics are removed.
        CompletableFuture<Void> published = CompletableFuture.runAsync(() -> service.onMetadataUpdate(delta, image));
        while (!published.isDone()) {
            settle();
            Thread.sleep(1);
        }
        published.join();
    }

    private static void share(JsonNode step, boolean succeeded) {
        Map<Uuid, Set<Integer>> partitions = new HashMap<>();
        step.get("partitions").properties().forEach(topic -> {
            Set<Integer> numbers = new HashSet<>();
            topic.getValue().forEach(each -> numbers.add(each.asInt()));
            partitions.put(Uuid.fromString(topic.getKey()), numbers);
        });
        String group = step.get("group").asText();
        runtime.scheduleWriteOperation("share", PARTITION, each -> succeeded
            ? each.initializeShareGroupState(group, partitions) : each.uninitializeShareGroupState(group, partitions));
    }

    private static RequestContext context(ApiKeys api, short number, String client, int correlation) throws Exception {
        return new RequestContext(new RequestHeader(api, number, client, correlation), "1", InetAddress.getByName("127.0.0.1"),
            KafkaPrincipal.ANONYMOUS, ListenerName.normalised("PLAINTEXT"), SecurityProtocol.PLAINTEXT, ClientInformation.EMPTY, false);
    }

    private static void request(ObjectNode step, ObjectNode answer) throws Exception {
        String api = step.get("api").asText();
        short number = (short) step.get("version").asInt();
        int correlation = step.get("correlation").asInt();
        Object data = converter(api, "Request", "read", JsonNode.class, short.class).invoke(null, step.get("data"), number);
        asTheBrokerHandsItOn(data, number);
        RequestContext context = context(ApiKeys.valueOf(api.replaceAll("([a-z])([A-Z])", "$1_$2").toUpperCase()), number,
            step.get("client").asText(), correlation);
        CompletableFuture<?> future = switch (api) {
            case "ConsumerGroupHeartbeat" -> service.consumerGroupHeartbeat(context, (ConsumerGroupHeartbeatRequestData) data);
            case "StreamsGroupHeartbeat" -> service.streamsGroupHeartbeat(context, (StreamsGroupHeartbeatRequestData) data)
                .thenApply(result -> result.data());
            case "ShareGroupHeartbeat" -> shareHeartbeat(context, (ShareGroupHeartbeatRequestData) data);
            case "JoinGroup" -> service.joinGroup(context, (JoinGroupRequestData) data, BufferSupplier.NO_CACHING);
            case "SyncGroup" -> service.syncGroup(context, (SyncGroupRequestData) data, BufferSupplier.NO_CACHING);
            case "Heartbeat" -> service.heartbeat(context, (HeartbeatRequestData) data);
            case "LeaveGroup" -> service.leaveGroup(context, (LeaveGroupRequestData) data)
                .thenApply(left -> new LeaveGroupResponse(left, number).data());
            case "OffsetCommit" -> commit(context, (OffsetCommitRequestData) data);
            case "TxnOffsetCommit" -> service.commitTransactionalOffsets(context, (TxnOffsetCommitRequestData) data, BufferSupplier.NO_CACHING);
            case "OffsetDelete" -> service.deleteOffsets(context, (OffsetDeleteRequestData) data, BufferSupplier.NO_CACHING);
            case "OffsetFetch" -> {
                catchUp();
                yield fetch(context, (OffsetFetchRequestData) data);
            }
            default -> throw new IllegalArgumentException(api);
        };
        waiting.add(new Waiting(correlation, api, number, future));
        answer.put("asked", correlation);
    }

    /** Names and ids of topics, and the member of an old LeaveGroup, are completed before the coordinator sees them. */
    private static void asTheBrokerHandsItOn(Object data, short number) {
        if (data instanceof OffsetCommitRequestData commit) {
            commit.topics().forEach(topic -> {
                if (number >= 10) {
                    topic.setName(image.topics().topicIdToNameView().get(topic.topicId()));
                } else {
                    topic.setTopicId(image.topics().topicNameToIdView().getOrDefault(topic.name(), Uuid.ZERO_UUID));
                }
            });
        } else if (data instanceof LeaveGroupRequestData leave && number < 3) {
            leave.setMembers(List.of(new LeaveGroupRequestData.MemberIdentity().setMemberId(leave.memberId())));
        } else if (data instanceof OffsetFetchRequestData fetch && number >= 10) {
            fetch.groups().stream().filter(group -> group.topics() != null).forEach(group -> group.topics().forEach(topic ->
                topic.setName(image.topics().topicIdToNameView().getOrDefault(topic.topicId(), ""))));
        }
    }

    /** Topic ids that the broker does not know never get to the coordinator. */
    private static CompletableFuture<OffsetCommitResponseData> commit(RequestContext context, OffsetCommitRequestData data) {
        List<OffsetCommitRequestData.OffsetCommitRequestTopic> unknown = data.topics().stream().filter(topic -> topic.name() == null).toList();
        data.topics().removeAll(unknown);
        return service.commitOffsets(context, data, BufferSupplier.NO_CACHING).thenApply(response -> {
            unknown.forEach(topic -> response.topics().add(new OffsetCommitResponseData.OffsetCommitResponseTopic().setTopicId(topic.topicId())
                .setPartitions(topic.partitions().stream().map(each -> new OffsetCommitResponseData.OffsetCommitResponsePartition()
                    .setPartitionIndex(each.partitionIndex()).setErrorCode(Errors.UNKNOWN_TOPIC_ID.code())).toList())));
            return response;
        });
    }

    private static CompletableFuture<OffsetFetchResponseData> fetch(RequestContext context, OffsetFetchRequestData data) {
        List<CompletableFuture<OffsetFetchResponseData.OffsetFetchResponseGroup>> groups = data.groups().stream()
            .map(group -> service.fetchOffsets(context, group, data.requireStable()).exceptionally(error ->
                OffsetFetchResponse.groupError(group, Errors.forException(cause(error)), context.apiVersion()))).toList();
        return CompletableFuture.allOf(groups.toArray(new CompletableFuture[0])).thenApply(none -> {
            List<OffsetFetchResponseData.OffsetFetchResponseGroup> fetched = groups.stream().map(CompletableFuture::join).toList();
            if (context.apiVersion() >= 10) fetched.forEach(CoordinatorReference::byTopicId);
            return new OffsetFetchResponseData().setGroups(fetched);
        });
    }

    /** As the broker does: topics are answered by id, and one that is gone is left out. */
    private static void byTopicId(OffsetFetchResponseData.OffsetFetchResponseGroup group) {
        group.topics().forEach(topic -> topic.setTopicId(
            image.topics().topicNameToIdView().getOrDefault(topic.name(), topic.topicId())));
        group.topics().stream().filter(topic -> topic.name().isEmpty()).forEach(topic ->
            topic.partitions().forEach(each -> each.setErrorCode(Errors.UNKNOWN_TOPIC_ID.code())));
        group.setTopics(group.topics().stream().filter(topic -> !topic.topicId().equals(Uuid.ZERO_UUID)).toList());
    }

    /** As the service does it, but share coordinators answer when the script says so. */
    private static CompletableFuture<ShareGroupHeartbeatResponseData> shareHeartbeat(
        RequestContext context, ShareGroupHeartbeatRequestData data) throws Exception {
        Method check = GroupCoordinatorService.class.getDeclaredMethod(
            "throwIfShareGroupHeartbeatRequestIsInvalid", ShareGroupHeartbeatRequestData.class);
        check.setAccessible(true);
        try {
            check.invoke(null, data);
        } catch (InvocationTargetException refused) {
            return CompletableFuture.completedFuture(refusal(refused.getCause()));
        }
        return runtime.scheduleWriteOperation("share", PARTITION, each -> each.shareGroupHeartbeat(context, data))
            .handle((result, error) -> error == null ? result.getKey() : refusal(error));
    }

    private static ShareGroupHeartbeatResponseData refusal(Throwable error) {
        Throwable cause = cause(error);
        return new ShareGroupHeartbeatResponseData().setErrorCode(Errors.forException(cause).code()).setErrorMessage(cause.getMessage());
    }

    private static Throwable cause(Throwable error) {
        return error instanceof CompletionException ? error.getCause() : error;
    }

    /**
     * Reads show the state as of the last record, also where an operation changed memory and wrote nothing. So a record
     * of another group is written before, which changes nothing.
     */
    private static void catchUp() {
        runtime.scheduleWriteOperation("catch-up", PARTITION, each -> new CoordinatorResult<>(
            List.of(GroupCoordinatorRecordHelpers.newOffsetCommitTombstoneRecord("nobody's", "topic", 0))));
        settle();
        log.written.clear();
    }

    private static void describe(JsonNode step, ObjectNode answer) throws Exception {
        catchUp();
        List<String> groups = List.of(step.get("group").asText());
        RequestContext context = context(ApiKeys.DESCRIBE_GROUPS, (short) 6, "admin", 0);
        var consumers = service.consumerGroupDescribe(context, groups);
        var shares = service.shareGroupDescribe(context, groups);
        var streams = service.streamsGroupDescribe(context, groups);
        var classic = service.describeGroups(context, groups);
        var listed = service.listGroups(context, new ListGroupsRequestData());
        settle();
        ObjectNode described = answer.putObject("described");
        described.set("ConsumerGroupDescribe", written("ConsumerGroupDescribe", (short) 1, new ConsumerGroupDescribeResponseData().setGroups(consumers.join())));
        described.set("ShareGroupDescribe", written("ShareGroupDescribe", (short) 1, new ShareGroupDescribeResponseData().setGroups(shares.join())));
        described.set("StreamsGroupDescribe", written("StreamsGroupDescribe", (short) 0, new StreamsGroupDescribeResponseData().setGroups(streams.join())));
        described.set("DescribeGroups", written("DescribeGroups", (short) 6, new DescribeGroupsResponseData().setGroups(classic.join())));
        described.set("ListGroups", written("ListGroups", (short) 5, listed.join()));
    }

    private static void answer(ObjectNode answer, String api, short number, CompletableFuture<?> future) {
        waiting.add(new Waiting(0, api, number, future));
        answer.put("asked", 0);
    }

    /** Runs what the operation set off, until nothing is left to do. */
    private static void settle() {
        while (!events.waiting.isEmpty() || !committed.isEmpty()) {
            events.drain();
            List<Runnable> told = new ArrayList<>(committed);
            committed.clear();
            told.forEach(Runnable::run);
        }
    }

    private static void collect(ObjectNode answer) throws Exception {
        ArrayNode records = answer.putArray("records");
        GroupCoordinatorRecordSerde serde = new GroupCoordinatorRecordSerde();
        for (Logged each : log.written) {
            byte[] value = serde.serializeValue(each.record());
            records.addObject().put("key", HexFormat.of().formatHex(serde.serializeKey(each.record())))
                .put("value", value == null ? null : HexFormat.of().formatHex(value)).put("producer", each.producerId());
        }
        log.written.clear();
        ArrayNode answers = answer.putArray("answers");
        List<Waiting> left = new ArrayList<>();
        for (Waiting each : waiting) {
            if (!each.future().isDone()) {
                left.add(each);
                continue;
            }
            ObjectNode one = answers.addObject().put("correlation", each.correlation()).put("api", each.api());
            try {
                one.set("response", written(each.api(), each.version(), each.future().join()));
            } catch (Exception error) {
                one.put("error", String.valueOf(error));
            }
        }
        waiting = left;
        ObjectNode armed = answer.putObject("timers");
        timers.armed().forEach((key, entry) -> armed.put(key, entry.expirationMs));
        answer.put("background", background.waiting.size());
    }

    private static JsonNode written(String api, short number, Object data) throws Exception {
        return (JsonNode) converter(api, "Response", "write", Class.forName(MESSAGES + api + "ResponseData"), short.class)
            .invoke(null, data, number);
    }

    private static Method converter(String api, String kind, String name, Class<?>... types) throws Exception {
        return Class.forName(MESSAGES + api + kind + "DataJsonConverter").getMethod(name, types);
    }

    private static Object capturedOrNull(Object of, String name) {
        try {
            Field field = of.getClass().getDeclaredField(name);
            field.setAccessible(true);
            return field.get(of);
        } catch (ReflectiveOperationException none) {
            return null;
        }
    }
}
