import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.FileReader;
import java.io.PrintStream;
import java.util.Arrays;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeSet;
import java.util.function.Supplier;
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
 * Runs Kafka's own server-side assignors on groups given as JSON lines and prints, line by line, what they assign and
 * the median of their running times in milliseconds. Arguments: input file, repetitions.
 */
public class AssignorReference {
    private static final ObjectMapper JSON = new ObjectMapper();

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
                Run run = group.has("subtopologies") ? streams(group) : partitions(group);
                double[] times = new double[repetitions];
                try {
                    Supplier<ObjectNode> result = null;
                    for (int i = 0; i < repetitions; i++) {
                        long start = System.nanoTime();
                        result = run.assign();
                        times[i] = (System.nanoTime() - start) / 1e6;
                    }
                    answer.set("assignment", result.get());
                } catch (RuntimeException error) {
                    answer.put("error", error.getClass().getSimpleName()).put("message", error.getMessage());
                }
                Arrays.sort(times);
                answer.put("ms", times[repetitions / 2]);
                out.println(JSON.writeValueAsString(answer));
            }
        }
        out.flush();
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
