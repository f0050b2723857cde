import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.ConsumerGroupDescription;
import org.apache.kafka.clients.admin.GroupListing;
import org.apache.kafka.clients.admin.ListConsumerGroupOffsetsSpec;
import org.apache.kafka.clients.admin.ListGroupsOptions;
import org.apache.kafka.clients.admin.ListShareGroupOffsetsSpec;
import org.apache.kafka.clients.admin.ListTopicsOptions;
import org.apache.kafka.clients.admin.MemberDescription;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.admin.ShareGroupDescription;
import org.apache.kafka.clients.admin.StreamsGroupDescription;
import org.apache.kafka.clients.admin.StreamsGroupMemberAssignment;
import org.apache.kafka.common.GroupType;
import org.apache.kafka.common.TopicPartition;

/** What the Admin client says of every group, in the form of the command describe --json. */
final class Described {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final String LOG = "__consumer_offsets";

    private Described() { }

    static void all(Admin admin, ObjectNode into) throws Exception {
        Map<Integer, Long> before = ends(admin);
        into.put("since_ms", System.currentTimeMillis());
        ObjectNode groups = into.putObject("groups");
        for (GroupListing listing : admin.listGroups(new ListGroupsOptions()).all().get()) {
            group(admin, listing, groups.putObject(listing.groupId()));
        }
        ObjectNode ends = into.putObject("ends");
        before.forEach((partition, end) -> ends.put(partition.toString(), end));
        Map<Integer, Long> after = ends(admin);
        ObjectNode endsAfter = into.putObject("ends_after");
        after.forEach((partition, end) -> endsAfter.put(partition.toString(), end));
        into.put("stable", before.equals(after));
        into.put("at_ms", System.currentTimeMillis());
    }

    private static Map<Integer, Long> ends(Admin admin) throws Exception {
        if (!admin.listTopics(new ListTopicsOptions().listInternal(true)).names().get().contains(LOG)) {
            return Map.of();
        }
        int partitions = admin.describeTopics(List.of(LOG)).allTopicNames().get().get(LOG).partitions().size();
        Map<TopicPartition, OffsetSpec> wanted = IntStream.range(0, partitions).boxed()
            .collect(Collectors.toMap(each -> new TopicPartition(LOG, each), each -> OffsetSpec.latest()));
        Map<Integer, Long> found = new TreeMap<>();
        admin.listOffsets(wanted).all().get().forEach((at, end) -> found.put(at.partition(), end.offset()));
        return found;
    }

    private static void group(Admin admin, GroupListing listing, ObjectNode into) throws Exception {
        String id = listing.groupId();
        GroupType type = listing.type().orElse(GroupType.UNKNOWN);
        ObjectNode own = into.putObject("listing");
        own.put("groupId", id).put("type", type.name()).put("protocol", listing.protocol());
        own.put("groupState", listing.groupState().map(Enum::name).orElse(null));
        own.put("isSimpleConsumerGroup", listing.isSimpleConsumerGroup());
        switch (type) {
            case SHARE -> {
                share(admin.describeShareGroups(List.of(id)).all().get().get(id), into.putObject("describe_share"));
                shareOffsets(admin, id, into.putObject("share_offsets"));
            }
            case STREAMS -> {
                streams(admin.describeStreamsGroups(List.of(id)).all().get().get(id), into.putObject("describe_streams"));
                offsets(admin, id, into.putObject("offsets"));
            }
            default -> {
                consumer(admin.describeConsumerGroups(List.of(id)).all().get().get(id), into.putObject("describe_consumer"));
                offsets(admin, id, into.putObject("offsets"));
            }
        }
    }

    private static void offsets(Admin admin, String id, ObjectNode into) throws Exception {
        var found = admin.listConsumerGroupOffsets(Map.of(id, new ListConsumerGroupOffsetsSpec())).partitionsToOffsetAndMetadata(id).get();
        found.forEach((at, offset) -> {
            ObjectNode each = into.putObject(at.toString());
            each.put("offset", offset.offset()).put("metadata", offset.metadata());
            each.put("leaderEpoch", offset.leaderEpoch().orElse(null));
        });
    }

    private static void shareOffsets(Admin admin, String id, ObjectNode into) throws Exception {
        var found = admin.listShareGroupOffsets(Map.of(id, new ListShareGroupOffsetsSpec())).partitionsToOffsetInfo(id).get();
        found.forEach((at, offset) -> {
            if (offset == null) {
                into.putNull(at.toString());
                return;
            }
            ObjectNode each = into.putObject(at.toString());
            each.put("startOffset", offset.startOffset()).put("leaderEpoch", offset.leaderEpoch().orElse(null));
        });
    }

    private static void consumer(ConsumerGroupDescription group, ObjectNode into) {
        into.put("groupId", group.groupId()).put("type", group.type().name()).put("state", group.groupState().name());
        into.put("groupState", group.groupState().name()).put("isSimpleConsumerGroup", group.isSimpleConsumerGroup());
        into.put("partitionAssignor", group.partitionAssignor());
        into.put("groupEpoch", group.groupEpoch().orElse(null));
        into.put("targetAssignmentEpoch", group.targetAssignmentEpoch().orElse(null));
        ArrayNode members = into.putArray("members");
        for (MemberDescription member : group.members()) {
            ObjectNode each = members.addObject();
            each.put("consumerId", member.consumerId()).put("clientId", member.clientId()).put("host", member.host());
            each.put("groupInstanceId", member.groupInstanceId().orElse(null)).put("rackId", member.rackId().orElse(null));
            each.put("memberEpoch", member.memberEpoch().orElse(null)).put("upgraded", member.upgraded().orElse(null));
            partitions(each.putObject("assignment"), member.assignment().topicPartitions());
            if (member.targetAssignment().isPresent()) {
                partitions(each.putObject("targetAssignment"), member.targetAssignment().get().topicPartitions());
            } else {
                each.putNull("targetAssignment");
            }
        }
    }

    private static void share(ShareGroupDescription group, ObjectNode into) {
        into.put("groupId", group.groupId()).put("groupState", group.groupState().name());
        into.put("groupEpoch", group.groupEpoch()).put("targetAssignmentEpoch", group.targetAssignmentEpoch());
        ArrayNode members = into.putArray("members");
        for (var member : group.members()) {
            ObjectNode each = members.addObject();
            each.put("consumerId", member.consumerId()).put("clientId", member.clientId()).put("host", member.host());
            each.put("memberEpoch", member.memberEpoch()).put("rackId", member.rackId().orElse(null));
            partitions(each.putObject("assignment"), member.assignment().topicPartitions());
        }
    }

    private static void streams(StreamsGroupDescription group, ObjectNode into) {
        into.put("groupId", group.groupId()).put("groupState", group.groupState().name());
        into.put("groupEpoch", group.groupEpoch()).put("targetAssignmentEpoch", group.targetAssignmentEpoch());
        into.put("topologyEpoch", group.topologyEpoch());
        ArrayNode members = into.putArray("members");
        for (var member : group.members()) {
            ObjectNode each = members.addObject();
            each.put("memberId", member.memberId()).put("clientId", member.clientId()).put("clientHost", member.clientHost());
            each.put("memberEpoch", member.memberEpoch()).put("processId", member.processId());
            each.put("topologyEpoch", member.topologyEpoch());
            tasks(each.putObject("assignment"), member.assignment());
            tasks(each.putObject("targetAssignment"), member.targetAssignment());
        }
    }

    private static void partitions(ObjectNode into, Collection<TopicPartition> partitions) {
        ArrayNode names = into.putArray("topicPartitions");
        partitions.stream().map(TopicPartition::toString).sorted().forEach(names::add);
    }

    private static void tasks(ObjectNode into, StreamsGroupMemberAssignment assignment) {
        tasks(into.putArray("activeTasks"), assignment.activeTasks());
        tasks(into.putArray("standbyTasks"), assignment.standbyTasks());
        tasks(into.putArray("warmupTasks"), assignment.warmupTasks());
    }

    private static void tasks(ArrayNode into, List<StreamsGroupMemberAssignment.TaskIds> tasks) {
        for (var each : tasks) {
            ArrayNode numbers = into.addObject().put("subtopologyId", each.subtopologyId()).putArray("partitions");
            each.partitions().stream().sorted().forEach(numbers::add);
        }
    }
}
