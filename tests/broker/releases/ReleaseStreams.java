import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.reflect.Constructor;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeSet;

/**
 * Gives streams groups to the sticky assignor of the Kafka release on the class path: one group a line from standard
 * input, one result a line to standard output, as member, role, subtopology, partitions in ascending order. The classes
 * and their package differ between releases, so everything is found by name.
 */
public class ReleaseStreams {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final String OWN = "org.apache.kafka.coordinator.group.streams.assignor.";
    private static final String SHARED = "org.apache.kafka.coordinator.group.api.streams.assignor.";

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            ObjectNode answer = JSON.createObjectNode();
            try {
                answer.set("members", assign(JSON.readTree(line)));
            } catch (InvocationTargetException failure) {
                answer.put("error", failure.getCause().getClass().getSimpleName());
            }
            System.out.println(JSON.writeValueAsString(answer));
        }
    }

    private static ObjectNode assign(JsonNode group) throws ReflectiveOperationException {
        boolean hasShared = exists(SHARED + "TaskAssignor");
        String names = hasShared ? SHARED : OWN;
        Map<String, Object> members = new LinkedHashMap<>();
        for (var each : group.get("members").properties()) {
            members.put(each.getKey(), member(each.getValue(), hasShared));
        }
        int standbys = group.get("standbys").asInt();
        Object configs = Map.of("num.standby.replicas", Integer.toString(standbys));
        if (hasShared) {
            Class<?> type = Class.forName(names + "AssignmentConfigs");
            configs = Proxy.newProxyInstance(type.getClassLoader(), new Class<?>[] {type},
                (proxy, method, given) -> method.getName().equals("numStandbyReplicas") ? standbys : List.of());
        }
        Object spec = Class.forName(OWN + "GroupSpecImpl").getConstructors()[0].newInstance(members, configs);
        Object assignor = Class.forName(OWN + "StickyTaskAssignor").getConstructor().newInstance();
        Class<?> described = Class.forName(names + "TopologyDescriber");
        Object assignment = Class.forName(names + "TaskAssignor")
            .getMethod("assign", Class.forName(names + "GroupSpec"), described)
            .invoke(assignor, spec, topology(group.get("subtopologies"), described));
        ObjectNode result = JSON.createObjectNode();
        Map<?, ?> given = (Map<?, ?>) assignment.getClass().getMethod("members").invoke(assignment);
        for (String id : members.keySet()) {
            ObjectNode roles = result.putObject(id);
            Object mine = given.get(id);
            write(roles.putObject("active"), mine.getClass().getMethod("activeTasks").invoke(mine));
            write(roles.putObject("standby"), mine.getClass().getMethod("standbyTasks").invoke(mine));
        }
        return result;
    }

    private static boolean exists(String name) {
        try {
            Class.forName(name);
            return true;
        } catch (ClassNotFoundException absent) {
            return false;
        }
    }

    private static Object member(JsonNode had, boolean hasShared) throws ReflectiveOperationException {
        String process = had.get("process").asText();
        Map<String, Set<Integer>> active = tasks(had.get("active"));
        Map<String, Set<Integer>> standby = tasks(had.get("standby"));
        if (hasShared) {
            Constructor<?> constructor = Class.forName(OWN + "MemberMetadataAndStateImpl").getConstructors()[0];
            return constructor.newInstance(
                Optional.empty(), Optional.empty(), process, Map.of(), active, standby, Map.of(), Map.of(), Map.of());
        }
        Constructor<?> constructor = Class.forName(OWN + "AssignmentMemberSpec").getConstructors()[0];
        return constructor.newInstance(
            Optional.empty(), Optional.empty(), active, standby, Map.of(), process, Map.of(), Map.of(), Map.of());
    }

    private static Object topology(JsonNode subtopologies, Class<?> type) {
        Map<String, JsonNode> byId = new LinkedHashMap<>();
        subtopologies.forEach(each -> byId.put(each.get("id").asText(), each));
        return Proxy.newProxyInstance(type.getClassLoader(), new Class<?>[] {type}, (proxy, method, given) ->
            switch (method.getName()) {
                case "subtopologies" -> new ArrayList<>(byId.keySet());
                case "maxNumInputPartitions" -> byId.get(given[0]).get("tasks").asInt();
                default -> byId.get(given[0]).get("stateful").asBoolean();
            });
    }

    private static Map<String, Set<Integer>> tasks(JsonNode entries) {
        Map<String, Set<Integer>> tasks = new LinkedHashMap<>();
        entries.properties().forEach(each -> {
            Set<Integer> numbers = new LinkedHashSet<>();
            each.getValue().forEach(number -> numbers.add(number.asInt()));
            tasks.put(each.getKey(), numbers);
        });
        return tasks;
    }

    private static void write(ObjectNode to, Object tasks) {
        ((Map<?, ?>) tasks).forEach((subtopology, numbers) ->
            new TreeSet<>((Set<Integer>) numbers).forEach(to.withArray((String) subtopology)::add));
    }
}
