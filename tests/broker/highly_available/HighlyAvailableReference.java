import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.FileReader;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.SortedMap;
import java.util.SortedSet;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.UUID;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.streams.processor.TaskId;
import org.apache.kafka.streams.processor.assignment.AssignmentConfigs;
import org.apache.kafka.streams.processor.assignment.ProcessId;
import org.apache.kafka.streams.processor.internals.assignment.ClientState;
import org.apache.kafka.streams.processor.internals.assignment.HighAvailabilityTaskAssignor;
import org.apache.kafka.streams.processor.internals.assignment.RackAwareTaskAssignor;

/**
 * Runs the HighAvailabilityTaskAssignor of Kafka Streams on groups given as JSON lines and prints each case with what it
 * assigns to each process. Argument: the file of cases.
 *
 * <p>The class knows processes, not members, and no role of warm-ups: they are standby tasks to it. Which copies it means
 * as warm-ups is seen on the way: the steps of the assignor are run one by one a second time, and their result is checked
 * against that of the whole. "waiting" are those of the standby tasks that are where the active task is to be in the end.
 *
 * <p>How the offsets of KIP-1071 become lags: a process without an offset has offset 0; a task's end is the largest that
 * any member reports, and beyond everything where no member reports one; a process whose member had the task active runs
 * it, if it reported no offset or nothing beyond its offset.
 */
public class HighlyAvailableReference {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final long RUNNING = -2;
    private static final long NO_END = 1L << 50;

    /** A process whose standby movements are watched. */
    static class WatchedState extends ClientState {
        private final ProcessId id;
        private final States states;

        WatchedState(ProcessId id, Map<String, String> tags, States states) {
            super(id, tags);
            this.id = id;
            this.states = states;
        }

        @Override
        public void assignStandby(TaskId task) {
            super.assignStandby(task);
            if (states.moving) {
                Set<ProcessId> from = states.movedFrom.computeIfAbsent(task, t -> new TreeSet<>());
                from.remove(id);
                from.add(states.lastLookedUp);
            }
        }
    }

    /** Remembers whom the assignor looked up last: the process that a standby task is moved away from. */
    @SuppressWarnings("serial")
    static class States extends TreeMap<ProcessId, ClientState> {
        boolean moving;
        ProcessId lastLookedUp;
        final Map<TaskId, Set<ProcessId>> movedFrom = new TreeMap<>();
        final Map<TaskId, ProcessId> homes = new TreeMap<>();

        @Override
        public ClientState get(Object id) {
            lastLookedUp = (ProcessId) id;
            return super.get(id);
        }
    }

    record Group(Set<TaskId> all, Set<TaskId> stateful, AssignmentConfigs configs, List<JsonNode> members) { }

    public static void main(String[] args) throws Exception {
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        try (BufferedReader in = new BufferedReader(new FileReader(args[0], StandardCharsets.UTF_8))) {
            for (String line = in.readLine(); line != null; line = in.readLine()) {
                ObjectNode test = (ObjectNode) JSON.readTree(line);
                test.set("expected", run(group(test.get("input"))));
                out.println(JSON.writeValueAsString(test));
            }
        }
        out.flush();
    }

    private static ObjectNode run(Group group) throws Exception {
        RackAwareTaskAssignor racks = new RackAwareTaskAssignor(Cluster.empty(), Map.of(), Map.of(), Map.of(), Map.of(),
            null, group.configs(), Time.SYSTEM);
        States whole = states(group);
        boolean followup = new HighAvailabilityTaskAssignor().assign(whole, group.all(), group.stateful(), racks,
            group.configs());
        States stepwise = states(group);
        Map<ProcessId, Set<TaskId>> warmups = warmups(group, stepwise, racks);
        ObjectNode answer = JSON.createObjectNode();
        ObjectNode processes = answer.putObject("processes");
        whole.forEach((id, state) -> {
            if (!state.activeTasks().equals(stepwise.get(id).activeTasks())
                || !state.standbyTasks().equals(stepwise.get(id).standbyTasks())) {
                throw new IllegalStateException("the steps and the whole differ");
            }
            Set<TaskId> warm = warmups.getOrDefault(id, Set.of());
            Set<TaskId> standby = new TreeSet<>(state.standbyTasks());
            standby.removeAll(warm);
            Set<TaskId> waiting = new TreeSet<>(standby);
            waiting.removeIf(task -> !stepwise.homes.get(task).equals(id));
            ObjectNode roles = processes.putObject(id.id().toString());
            write(roles, "active", state.activeTasks());
            write(roles, "standby", standby);
            write(roles, "warmup", warm);
            write(roles, "waiting", waiting);
        });
        return answer.put("followup", followup);
    }

    /** The copies that the assignor makes beyond the standby replicas, to move a task to their process later. */
    private static Map<ProcessId, Set<TaskId>> warmups(Group group, States states, RackAwareTaskAssignor racks)
        throws Exception {
        Class<?> assignor = HighAvailabilityTaskAssignor.class;
        Class<?> movement = Class.forName("org.apache.kafka.streams.processor.internals.assignment.TaskMovement");
        SortedSet<TaskId> stateful = new TreeSet<>(group.stateful());
        AtomicInteger remaining = new AtomicInteger(group.configs().maxWarmupReplicas());
        call(assignor, null, "assignActiveStatefulTasks", states, stateful, racks, group.configs());
        states.forEach((id, state) -> state.activeTasks().forEach(task -> states.homes.put(task, id)));
        call(assignor, new HighAvailabilityTaskAssignor(), "assignStandbyReplicaTasks", states, group.all(), stateful, racks,
            group.configs());
        Object caughtUp = call(assignor, null, "tasksToCaughtUpClients", stateful, states,
            group.configs().acceptableRecoveryLag());
        Object byLag = call(assignor, null, "tasksToClientByLag", stateful, states);
        Map<ProcessId, Set<TaskId>> warmups = new TreeMap<>();
        call(movement, null, "assignActiveTaskMovements", caughtUp, byLag, states, warmups, remaining);
        states.moving = true;
        call(movement, null, "assignStandbyTaskMovements", caughtUp, byLag, states, remaining, warmups);
        states.moving = false;
        SortedSet<TaskId> stateless = new TreeSet<>(group.all());
        stateless.removeAll(stateful);
        call(assignor, null, "assignStatelessActiveTasks", states, stateless, racks);
        states.movedFrom.forEach((task, from) -> from.forEach(id -> {
            if (states.get(id).standbyTasks().contains(task)) {
                warmups.computeIfAbsent(id, i -> new TreeSet<>()).add(task);
            }
        }));
        return warmups;
    }

    private static Object call(Class<?> type, Object on, String name, Object... arguments) throws Exception {
        for (Method method : type.getDeclaredMethods()) {
            if (method.getName().equals(name)) {
                method.setAccessible(true);
                try {
                    return method.invoke(on, arguments);
                } catch (InvocationTargetException error) {
                    throw (Exception) error.getCause();
                }
            }
        }
        throw new NoSuchMethodException(name);
    }

    private static Group group(JsonNode input) {
        Set<TaskId> all = new TreeSet<>();
        Set<TaskId> stateful = new TreeSet<>();
        for (JsonNode subtopology : input.get("subtopologies")) {
            for (int partition = 0; partition < subtopology.get("tasks").asInt(); partition++) {
                TaskId task = new TaskId(subtopology.get("id").asInt(), partition);
                all.add(task);
                if (subtopology.get("stateful").asBoolean()) {
                    stateful.add(task);
                }
            }
        }
        List<String> tags = new ArrayList<>();
        input.get("rack_aware_tags").forEach(tag -> tags.add(tag.asText()));
        AssignmentConfigs configs = new AssignmentConfigs(input.get("acceptable_recovery_lag").asLong(),
            input.get("num_warmup_replicas").asInt(), input.get("num_standby_replicas").asInt(), 60_000L, tags);
        List<JsonNode> members = new ArrayList<>();
        input.get("members").forEach(members::add);
        return new Group(all, stateful, configs, members);
    }

    private static States states(Group group) {
        Map<TaskId, Long> ends = new TreeMap<>();
        group.stateful().forEach(task -> ends.put(task, NO_END));
        Map<ProcessId, Map<TaskId, Long>> offsets = new HashMap<>();
        Map<TaskId, JsonNode> owners = new TreeMap<>();
        States states = new States();
        for (JsonNode member : group.members()) {
            ProcessId id = process(member);
            Map<TaskId, Long> known = offsets.computeIfAbsent(id, i -> new TreeMap<>());
            member.path("offsets").fields().forEachRemaining(
                e -> known.merge(TaskId.parse(e.getKey()), e.getValue().asLong(), Math::max));
            member.path("end_offsets").fields().forEachRemaining(e -> ends.computeIfPresent(TaskId.parse(e.getKey()),
                (task, end) -> end == NO_END ? e.getValue().asLong() : Math.max(end, e.getValue().asLong())));
            member.path("active").fields().forEachRemaining(e -> e.getValue().forEach(
                number -> owners.put(new TaskId(Integer.parseInt(e.getKey()), number.asInt()), member)));
            if (!states.containsKey(id)) {
                Map<String, String> tags = new HashMap<>();
                member.path("tags").fields().forEachRemaining(e -> tags.put(e.getKey(), e.getValue().asText()));
                states.put(id, new WatchedState(id, tags, states));
            }
            states.get(id).incrementCapacity();
        }
        owners.forEach((task, owner) -> {
            JsonNode end = owner.path("end_offsets").get(task.toString());
            Long offset = offsets.get(process(owner)).get(task);
            if (offset == null || end != null && end.asLong() <= offset) {
                offsets.get(process(owner)).put(task, RUNNING);
            }
        });
        states.forEach((id, state) -> {
            state.addPreviousTasksAndOffsetSums("all", offsets.get(id));
            state.computeTaskLags(id, ends);
        });
        return states;
    }

    private static ProcessId process(JsonNode member) {
        return new ProcessId(UUID.fromString(member.get("process_id").asText()));
    }

    private static void write(ObjectNode roles, String role, Collection<TaskId> tasks) {
        if (tasks.isEmpty()) {
            return;
        }
        ObjectNode to = roles.putObject(role);
        new TreeSet<>(tasks).forEach(task -> to.withArray(String.valueOf(task.subtopology())).add(task.partition()));
    }
}
