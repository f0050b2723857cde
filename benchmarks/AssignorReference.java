import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.FileReader;
import java.io.PrintStream;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.nio.ByteBuffer;
import java.util.Base64;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.Set;
import java.util.TreeSet;
import java.util.function.Supplier;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.GroupSubscription;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Subscription;
import org.apache.kafka.clients.consumer.CooperativeStickyAssignor;
import org.apache.kafka.clients.consumer.RoundRobinAssignor;
import org.apache.kafka.clients.consumer.StickyAssignor;
import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.PartitionInfo;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.coordinator.group.api.assignor.MemberAssignment;
import org.apache.kafka.coordinator.group.api.assignor.MemberSubscription;
import org.apache.kafka.coordinator.group.api.assignor.PartitionAssignor;
import org.apache.kafka.coordinator.group.api.assignor.GroupSpec;
import org.apache.kafka.coordinator.group.api.assignor.SubscribedTopicDescriber;
import org.apache.kafka.coordinator.group.api.assignor.SubscriptionType;
import org.apache.kafka.coordinator.group.assignor.RangeAssignor;
import org.apache.kafka.coordinator.group.assignor.SimpleAssignor;
import org.apache.kafka.coordinator.group.assignor.UniformAssignor;
import org.apache.kafka.coordinator.group.streams.assignor.AssignmentMemberSpec;
import org.apache.kafka.coordinator.group.streams.assignor.StickyTaskAssignor;
import org.apache.kafka.coordinator.group.streams.assignor.TopologyDescriber;

/**
 * Runs Kafka's own assignors on groups given as JSON lines and prints, line by line, what they assign and the median of
 * the thread's processor times in milliseconds. Each group is assigned as often before, unmeasured, to be compiled.
 * Arguments: input file, repetitions.
 */
public class AssignorReference {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final ThreadMXBean THREADS = ManagementFactory.getThreadMXBean();

    record Member(String rack, String instance, Set<Uuid> topics, Map<Uuid, Set<Integer>> previous)
        implements MemberSubscription, MemberAssignment {
        public Optional<String> rackId() { return Optional.ofNullable(rack); }
        public Optional<String> instanceId() { return Optional.ofNullable(instance); }
        public Set<Uuid> subscribedTopicIds() { return topics; }
        public Map<Uuid, Set<Integer>> partitions() { return previous; }
    }

    record Group(Map<String, Member> members, SubscriptionType subscriptionType, Map<Uuid, Set<Integer>> assigned,
                 Map<Uuid, Set<Integer>> assignable) implements GroupSpec {
        public java.util.Collection<String> memberIds() { return members.keySet(); }
        public boolean isPartitionAssigned(Uuid topic, int partition) {
            return assigned.getOrDefault(topic, Set.of()).contains(partition);
        }
        public boolean isPartitionAssignable(Uuid topic, int partition) {
            return assignable == null || assignable.getOrDefault(topic, Set.of()).contains(partition);
        }
        public MemberSubscription memberSubscription(String id) { return members.get(id); }
        public MemberAssignment memberAssignment(String id) { return members.get(id); }
    }

    public static void main(String[] args) throws Exception {
        int repetitions = Integer.parseInt(args[1]);
        PrintStream out = new PrintStream(System.out, false, "UTF-8");
        try (BufferedReader in = new BufferedReader(new FileReader(args[0], java.nio.charset.StandardCharsets.UTF_8))) {
            for (String line = in.readLine(); line != null; line = in.readLine()) {
                JsonNode group = JSON.readTree(line);
                ObjectNode answer = JSON.createObjectNode();
                Run run = group.has("subtopologies") ? streams(group)
                    : group.has("counts") ? client(group) : partitions(group);
                try {
                    measured(run, repetitions, new ArrayList<>());
                    List<Double> times = new ArrayList<>();
                    answer.set("assignment", measured(run, repetitions, times).get());
                    Collections.sort(times);
                    answer.put("ms", times.get(times.size() / 2));
                } catch (RuntimeException error) {
                    answer.put("error", error.getClass().getSimpleName()).put("message", error.getMessage());
                }
                out.println(JSON.writeValueAsString(answer));
            }
        }
        out.flush();
    }

    /** Assigns again and again, for at most some ten seconds, and keeps the thread's processor times in milliseconds. */
    private static Supplier<ObjectNode> measured(Run run, int repetitions, List<Double> times) {
        Supplier<ObjectNode> result;
        double total = 0;
        do {
            long start = THREADS.getCurrentThreadCpuTime();
            result = run.assign();
            times.add((THREADS.getCurrentThreadCpuTime() - start) / 1e6);
            total += times.get(times.size() - 1);
        } while (times.size() < repetitions && total < 10_000);
        return result;
    }

    /** Assigns; what it returns writes the assignment down, outside of the time measured. */
    interface Run {
        Supplier<ObjectNode> assign();
    }

    private static Run partitions(JsonNode group) {
        Map<Uuid, Integer> counts = new HashMap<>();
        group.get("topics").fields().forEachRemaining(e -> counts.put(Uuid.fromString(e.getKey()), e.getValue().asInt()));
        Map<String, Member> members = new LinkedHashMap<>();
        for (JsonNode member : group.get("members")) {
            Set<Uuid> topics = new LinkedHashSet<>();
            member.get("topics").forEach(topic -> topics.add(Uuid.fromString(topic.asText())));
            Map<Uuid, Set<Integer>> previous = new LinkedHashMap<>();
            for (JsonNode entry : member.get("previous")) {
                previous.put(Uuid.fromString(entry.get(0).asText()), numbers(entry.get(1), new LinkedHashSet<>()));
            }
            members.put(member.get("id").asText(), new Member(null, text(member.get("instance")), topics,
                Collections.unmodifiableMap(previous)));
        }
        Map<Uuid, Set<Integer>> assigned = new HashMap<>();
        members.values().forEach(member -> member.previous().forEach(
            (topic, some) -> assigned.computeIfAbsent(topic, t -> new HashSet<>()).addAll(some)));
        Group spec = new Group(members,
            group.get("homogeneous").asBoolean() ? SubscriptionType.HOMOGENEOUS : SubscriptionType.HETEROGENEOUS,
            assigned, sets(group.get("assignable")));
        SubscribedTopicDescriber topics = new SubscribedTopicDescriber() {
            public int numPartitions(Uuid topic) { return counts.getOrDefault(topic, -1); }
            public Set<String> racksForPartition(Uuid topic, int partition) { return Set.of(); }
        };
        PartitionAssignor assignor = switch (group.get("assignor").asText()) {
            case "uniform" -> new UniformAssignor();
            case "range" -> new RangeAssignor();
            default -> new SimpleAssignor();
        };
        return () -> {
            Map<String, MemberAssignment> result = assignor.assign(spec, topics).members();
            return () -> {
                ObjectNode assignment = JSON.createObjectNode();
                for (String id : members.keySet()) {
                    ArrayNode entries = assignment.putArray(id);
                    if (result.containsKey(id)) {
                        result.get(id).partitions().forEach((topic, some) -> {
                            ArrayNode entry = entries.addArray().add(topic.toString());
                            some.forEach(entry.addArray()::add);
                        });
                    }
                }
                return assignment;
            };
        };
    }

    /** A classic group: what its leader's assignor gives, without racks. */
    private static Run client(JsonNode group) {
        List<Node> nodes = List.of(new Node(1, "localhost", 9092));
        List<PartitionInfo> partitions = new ArrayList<>();
        group.get("counts").fields().forEachRemaining(each -> {
            for (int number = 0; number < each.getValue().asInt(); number++) {
                partitions.add(new PartitionInfo(each.getKey(), number, nodes.get(0), new Node[0], new Node[0]));
            }
        });
        Cluster cluster = new Cluster("c", nodes, partitions, Set.of(), Set.of());
        Map<String, Subscription> members = new HashMap<>();
        List<String> ids = new ArrayList<>();
        for (JsonNode member : group.get("members")) {
            List<String> topics = new ArrayList<>();
            member.get("topics").forEach(topic -> topics.add(topic.asText()));
            List<TopicPartition> owned = new ArrayList<>();
            member.get("owned").forEach(each -> owned.add(new TopicPartition(each.get(0).asText(), each.get(1).asInt())));
            String data = text(member.get("user_data"));
            ByteBuffer bytes = data == null ? null : ByteBuffer.wrap(Base64.getDecoder().decode(data));
            members.put(member.get("id").asText(),
                new Subscription(topics, bytes, owned, member.get("generation").asInt(), Optional.empty()));
            ids.add(member.get("id").asText());
        }
        String name = group.get("assignor").asText();
        return () -> {
            ConsumerPartitionAssignor assignor = switch (name) {
                case "range" -> new org.apache.kafka.clients.consumer.RangeAssignor();
                case "roundrobin" -> new RoundRobinAssignor();
                case "sticky" -> new StickyAssignor();
                default -> new CooperativeStickyAssignor();
            };
            members.values().stream().map(Subscription::userData).filter(Objects::nonNull).forEach(ByteBuffer::rewind);
            var result = assignor.assign(cluster, new GroupSubscription(members)).groupAssignment();
            return () -> {
                ObjectNode assignment = JSON.createObjectNode();
                for (String id : ids) {
                    ArrayNode entries = assignment.putArray(id);
                    result.get(id).partitions().forEach(each -> entries.addArray().add(each.topic()).add(each.partition()));
                }
                return assignment;
            };
        };
    }

    private static Run streams(JsonNode group) {
        Map<String, JsonNode> subtopologies = new java.util.TreeMap<>();
        group.get("subtopologies").forEach(subtopology -> subtopologies.put(subtopology.get("id").asText(), subtopology));
        TopologyDescriber topology = new TopologyDescriber() {
            public List<String> subtopologies() { return new ArrayList<>(subtopologies.keySet()); }
            public int maxNumInputPartitions(String id) { return subtopologies.get(id).get("tasks").asInt(); }
            public boolean isStateful(String id) { return subtopologies.get(id).get("stateful").asBoolean(); }
        };
        Map<String, AssignmentMemberSpec> members = new LinkedHashMap<>();
        for (JsonNode member : group.get("members")) {
            members.put(member.get("id").asText(), new AssignmentMemberSpec(Optional.empty(), Optional.empty(),
                tasks(member.get("active")), tasks(member.get("standby")), Map.of(), member.get("process").asText(),
                Map.of(), Map.of(), Map.of()));
        }
        var spec = new org.apache.kafka.coordinator.group.streams.assignor.GroupSpecImpl(members,
            Map.of("num.standby.replicas", group.get("standbys").asText()));
        return () -> {
            var result = new StickyTaskAssignor().assign(spec, topology).members();
            return () -> {
                ObjectNode assignment = JSON.createObjectNode();
                for (String id : members.keySet()) {
                    ObjectNode roles = assignment.putObject(id);
                    write(roles.putObject("active"), result.get(id).activeTasks());
                    write(roles.putObject("standby"), result.get(id).standbyTasks());
                }
                return assignment;
            };
        };
    }

    private static void write(ObjectNode to, Map<String, Set<Integer>> tasks) {
        tasks.forEach((subtopology, some) -> new TreeSet<>(some).forEach(to.withArray(subtopology)::add));
    }

    private static Map<String, Set<Integer>> tasks(JsonNode entries) {
        Map<String, Set<Integer>> tasks = new LinkedHashMap<>();
        entries.fields().forEachRemaining(e -> tasks.put(e.getKey(), numbers(e.getValue(), new LinkedHashSet<>())));
        return tasks;
    }

    private static Map<Uuid, Set<Integer>> sets(JsonNode entries) {
        if (entries == null || entries.isNull()) {
            return null;
        }
        Map<Uuid, Set<Integer>> sets = new HashMap<>();
        entries.fields().forEachRemaining(
            e -> sets.put(Uuid.fromString(e.getKey()), numbers(e.getValue(), new HashSet<>())));
        return sets;
    }

    private static Set<Integer> numbers(JsonNode list, Set<Integer> into) {
        list.forEach(number -> into.add(number.asInt()));
        return into;
    }

    private static String text(JsonNode node) {
        return node == null || node.isNull() ? null : node.asText();
    }
}
