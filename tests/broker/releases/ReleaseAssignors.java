import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.Collection;
import java.util.Collections;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeSet;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.coordinator.group.api.assignor.GroupSpec;
import org.apache.kafka.coordinator.group.api.assignor.MemberAssignment;
import org.apache.kafka.coordinator.group.api.assignor.MemberSubscription;
import org.apache.kafka.coordinator.group.api.assignor.PartitionAssignor;
import org.apache.kafka.coordinator.group.api.assignor.SubscribedTopicDescriber;
import org.apache.kafka.coordinator.group.api.assignor.SubscriptionType;

/**
 * Gives groups to the assignors of the Kafka release on the class path: one group a line from standard input, one
 * result a line to standard output, as member, topic id, partitions in ascending order. Compiles with each release
 * from 3.9 on, so the assignors are found by name.
 */
public class ReleaseAssignors {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final String PACKAGE = "org.apache.kafka.coordinator.group.assignor.";
    private static final Map<String, String> CLASSES =
        Map.of("uniform", "UniformAssignor", "range", "RangeAssignor", "simple", "SimpleAssignor");

    record Work(Set<Uuid> topics, Map<Uuid, Set<Integer>> before) implements MemberSubscription, MemberAssignment {
        public Optional<String> rackId() { return Optional.empty(); }
        public Optional<String> instanceId() { return Optional.empty(); }
        public Set<Uuid> subscribedTopicIds() { return topics; }
        public Map<Uuid, Set<Integer>> partitions() { return before; }
    }

    record Spec(Map<String, Work> members, SubscriptionType subscriptionType) implements GroupSpec {
        public Collection<String> memberIds() { return members.keySet(); }
        public MemberSubscription memberSubscription(String id) { return members.get(id); }
        public MemberAssignment memberAssignment(String id) { return members.get(id); }
        public boolean isPartitionAssignable(Uuid topic, int partition) { return true; }
        public boolean isPartitionAssigned(Uuid topic, int partition) {
            return members.values().stream().anyMatch(m -> m.before().getOrDefault(topic, Set.of()).contains(partition));
        }
    }

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            ObjectNode answer = JSON.createObjectNode();
            try {
                answer.set("members", assign(JSON.readTree(line)));
            } catch (RuntimeException failure) {
                answer.put("error", failure.getClass().getSimpleName());
            }
            System.out.println(JSON.writeValueAsString(answer));
        }
    }

    private static ObjectNode assign(JsonNode group) throws ReflectiveOperationException {
        Map<Uuid, Integer> counts = new HashMap<>();
        group.get("topics").fields().forEachRemaining(e -> counts.put(Uuid.fromString(e.getKey()), e.getValue().asInt()));
        Map<String, Work> members = new LinkedHashMap<>();
        group.get("members").fields().forEachRemaining(e -> members.put(e.getKey(), work(e.getValue())));
        boolean same = members.values().stream().map(Work::topics).distinct().count() <= 1;
        Spec spec = new Spec(members, same ? SubscriptionType.HOMOGENEOUS : SubscriptionType.HETEROGENEOUS);
        SubscribedTopicDescriber topics = new SubscribedTopicDescriber() {
            public int numPartitions(Uuid topic) { return counts.getOrDefault(topic, -1); }
            public Set<String> racksForPartition(Uuid topic, int partition) { return Set.of(); }
        };
        Object assignor = Class.forName(PACKAGE + CLASSES.get(group.get("assignor").asText()))
            .getDeclaredConstructor().newInstance();
        ObjectNode result = JSON.createObjectNode();
        ((PartitionAssignor) assignor).assign(spec, topics).members().forEach((id, given) -> {
            ObjectNode mine = result.putObject(id);
            given.partitions().forEach((topic, numbers) -> {
                if (!numbers.isEmpty()) {
                    new TreeSet<>(numbers).forEach(mine.withArray(topic.toString())::add);
                }
            });
        });
        return result;
    }

    private static Work work(JsonNode member) {
        Set<Uuid> topics = new LinkedHashSet<>();
        member.get("topics").forEach(topic -> topics.add(Uuid.fromString(topic.asText())));
        Map<Uuid, Set<Integer>> before = new LinkedHashMap<>();
        member.get("before").fields().forEachRemaining(e -> {
            Set<Integer> numbers = new LinkedHashSet<>();
            e.getValue().forEach(number -> numbers.add(number.asInt()));
            before.put(Uuid.fromString(e.getKey()), numbers);
        });
        return new Work(topics, Collections.unmodifiableMap(before));
    }
}
