"""Rules of what groups assign from: recorded topics, resolved regexes, initialised share partitions, the topology."""

from typing import Final

from coordinator_core.audit.rules.epoch_order import EpochsBefore, on_epoch, on_target
from coordinator_core.audit.rules.judged_group import JudgedGroup
from coordinator_core.audit.rules.known_facts import REGEX
from coordinator_core.cluster.clocks import CLOCK_TOLERANCE_MS
from coordinator_core.cluster.topic_history import TOPIC_RESOURCE
from coordinator_core.groups import re2
from coordinator_core.groups.consumer.state import ConsumerGroup, ResolvedRegex
from coordinator_core.groups.epochs import Partitions
from coordinator_core.groups.rules import SHARE_STATE, TOPOLOGY, Rule
from coordinator_core.groups.share.state import ShareGroup, StatePartitionMetadata
from coordinator_core.groups.streams.replay import topology_of
from coordinator_core.groups.streams.state import StreamsGroup, Topology, by_subtopology
from coordinator_core.history.held_units import SHARE_KIND, STREAMS_KIND
from coordinator_core.record_fields.consumer_group import (
    ConsumerGroupPartitionMetadataRecord,
    ConsumerGroupRegularExpressionRecord,
)
from coordinator_core.record_fields.share_group import ShareGroupTargetAssignmentMemberRecord
from coordinator_core.record_fields.streams_group import (
    StreamsGroupMetadataRecord,
    StreamsGroupPartitionMetadataRecord,
    StreamsGroupTargetAssignmentMemberRecord,
    StreamsGroupTopologyRecord,
)
from coordinator_core.records import CoordinatorRecord, LogPosition

PartitionMetadataRecord = ConsumerGroupPartitionMetadataRecord | StreamsGroupPartitionMetadataRecord
DEFAULT_TOPIC_CONFIGS: Final = {
    "cleanup.policy": "delete",
    "message.timestamp.type": "CreateTime",
    "retention.ms": "604800000",
    "segment.bytes": "1073741824",
}
"""Kafka's defaults of what topologies configure, for topics without a record of it; another one is not compared."""


def on_partition_metadata(judged: JudgedGroup, record: PartitionMetadataRecord, before: None) -> None:
    """Judge the topics that a broker recorded with a group: their numbers of partitions can be meant."""
    for topic in record.value["topics"] if record.value is not None else ():
        _count(judged, record.at, topic["topicName"], topic["numPartitions"])


def _count(judged: JudgedGroup, at: LogPosition, topic: str, partitions: int) -> None:
    problem = judged.plausible.topic_problem(topic, partitions)
    if problem is not None:
        judged.broken(Rule.COUNT_IMPLAUSIBLE, at, None, problem)


def share_target_before(judged: JudgedGroup, record: ShareGroupTargetAssignmentMemberRecord) -> Partitions | None:
    """Return the member's target before the record; None if the log may not have shown it."""
    state, member_id = judged.group.state, record.key["memberId"]
    if not judged.facts.knows_member("target", member_id):
        return None
    return state.targets.get(member_id, {}) if isinstance(state, ShareGroup) else {}


def on_share_target(
    judged: JudgedGroup, record: ShareGroupTargetAssignmentMemberRecord, before: Partitions | None
) -> None:
    """Judge a target of a share group: it contains only partitions whose share state was initialised (KIP-932)."""
    on_target(SHARE_KIND, judged, record)
    state, member_id = judged.group.state, record.key["memberId"]
    if record.value is None or before is None or not isinstance(state, ShareGroup):
        return
    # Brokers of 4.0 (early access) record no share state with a group, and no hash of its topics.
    if not judged.facts.knows(SHARE_STATE) or state.metadata_hash is None:
        return
    ready = state.state_partitions.initialized if state.state_partitions is not None else {}
    for topic_id, partitions in state.targets[member_id].items():
        known = ready.get(topic_id)
        new = set(partitions) - set(before.get(topic_id, ()))  # the target of a deleted topic may stay
        missing = sorted(new - set(known.partitions if known is not None else ()))
        # A topic may be deleted while a broker after 4.4 computes the target beside the heartbeats (KIP-1263).
        if missing and (known is not None or not judged.may_be_after_4_4(record.at)):
            detail = f"{topic_id}-{missing[0]} has no share state"
            judged.broken(Rule.SHARE_STATE_MISSING, record.at, member_id, detail)


def share_state_before(judged: JudgedGroup, record: CoordinatorRecord) -> StatePartitionMetadata | None:
    """Return which share partitions have a state before the record; None if the log may not have shown it."""
    state = judged.group.state
    known = isinstance(state, ShareGroup) and judged.facts.knows(SHARE_STATE)
    return state.state_partitions if known and isinstance(state, ShareGroup) else None


def on_share_state(judged: JudgedGroup, record: CoordinatorRecord, before: StatePartitionMetadata | None) -> None:
    """Judge which share partitions have a state: none loses it while its topic exists and is not being deleted."""
    judged.facts.note(SHARE_STATE, record.at)
    state = judged.group.state
    after = state.state_partitions if isinstance(state, ShareGroup) else None
    if before is None or after is None or record.value is None:
        return
    for topic_id, topic in before.initialized.items():
        left = after.initialized.get(topic_id)
        lost = sorted(set(topic.partitions) - set(left.partitions if left is not None else ()))
        gone = topic_id in before.deleting or topic_id in after.deleting
        if lost and not gone and (left is not None or _exists(judged, topic.name, topic_id, record.at)):
            detail = f"{topic.name}-{lost[0]} had a share state"
            judged.broken(Rule.SHARE_STATE_LOST, record.at, None, detail)


def _exists(judged: JudgedGroup, name: str, topic_id: str, at: LogPosition) -> bool:
    """Whether a topic that existed before a record still exists after it, by whichever clock."""
    return judged.topics is not None and judged.topics.was_there(name, topic_id, at.timestamp_ms, CLOCK_TOLERANCE_MS)


def regex_before(judged: JudgedGroup, record: ConsumerGroupRegularExpressionRecord) -> ResolvedRegex | None:
    """Return to what the regular expression was resolved before the record."""
    state = judged.group.state
    return state.regexes.get(record.key["regularExpression"]) if isinstance(state, ConsumerGroup) else None


def on_regex(judged: JudgedGroup, record: ConsumerGroupRegularExpressionRecord, before: ResolvedRegex | None) -> None:
    """Judge to what a regular expression is resolved, by the version of the topics that the record names (KIP-848)."""
    regex, value = record.key["regularExpression"], record.value
    judged.facts.note(REGEX + regex, record.at)
    if value is None or judged.topics is None or not judged.topics.is_whole(record.at.timestamp_ms):
        return
    version = judged.topics.at_offset(value["version"])
    # A version of the topics without a place in the metadata log is of a snapshot: records do not name it.
    if version is None or version.at.partition < 0 or re2.error_in(regex) is not None:
        return
    names, existing = set(value["topics"]), version.image.by_name.keys()
    strange = sorted(names - set(re2.matching(regex, [*(names & existing)])))
    if strange:
        detail = f"{regex} is resolved to {strange[0]}, which does not match it, or does not exist"
        judged.broken(Rule.REGEX_TOPICS_WRONG, record.at, None, detail)
    lost = sorted((set(before.topics) - names) & existing) if before is not None else []
    if lost:
        detail = f"{regex} is no longer resolved to {lost[0]}, which exists"
        judged.broken(Rule.REGEX_TOPIC_LOST, record.at, None, detail)


def topology_before(judged: JudgedGroup, record: CoordinatorRecord) -> Topology | None:
    """Return the topology before the record."""
    state = judged.group.state
    return state.topology if isinstance(state, StreamsGroup) else None


def on_topology(judged: JudgedGroup, record: StreamsGroupTopologyRecord, before: Topology | None) -> None:
    """Judge the topology of a streams group: the next one has the next epoch, an epoch one topology (KIP-1071)."""
    facts = judged.facts
    for subtopology in record.value["subtopologies"] if record.value is not None else ():
        for topic in (*subtopology["repartitionSourceTopics"], *subtopology["stateChangelogTopics"]):
            _count(judged, record.at, topic["name"], topic["partitions"])
    known = facts.knows(TOPOLOGY)
    facts.note(TOPOLOGY, record.at)
    if record.value is None or not known:
        return
    now = topology_of(record.value)
    if before is None:
        _first_topology(judged, now.epoch, record.at)
    elif now.epoch not in (before.epoch, before.epoch + 1):
        detail = f"topology epoch {now.epoch} follows {before.epoch}"
        judged.broken(Rule.TOPOLOGY_EPOCH_WRONG, record.at, None, detail)
    elif now.epoch == before.epoch and by_subtopology(now) != by_subtopology(before):
        judged.broken(Rule.TOPOLOGY_EPOCH_WRONG, record.at, None, f"topology epoch {now.epoch} has another topology")


def _first_topology(judged: JudgedGroup, epoch: int, at: LogPosition) -> None:
    """The first topology is that of a member, which the record of the member before it says."""
    state = judged.group.state
    if not isinstance(state, StreamsGroup) or not judged.facts.whole or judged.operation.converted:
        return
    if state.members and epoch not in {member.topology_epoch for member in state.members.values()}:
        detail = f"topology epoch {epoch}, which is that of none of its members"
        judged.broken(Rule.TOPOLOGY_EPOCH_WRONG, at, None, detail)


def on_streams_epoch(judged: JudgedGroup, record: StreamsGroupMetadataRecord, before: EpochsBefore) -> None:
    """Judge group metadata of a streams group: its members have a topology, and no later one was validated.

    The epoch of a classic group that becomes a streams group is written before its topology.
    """
    on_epoch(STREAMS_KIND, judged, record, before)
    state, value = judged.group.state, record.value
    if value is None or not isinstance(state, StreamsGroup) or not judged.facts.knows(TOPOLOGY):
        return
    validated = value.get("validatedTopologyEpoch", -1)
    if state.topology is None:
        if state.members and not judged.operation.converted:
            judged.broken(Rule.TOPOLOGY_EPOCH_WRONG, record.at, None, "the group has members and no topology")
    elif validated > state.topology.epoch:
        detail = f"topology epoch {validated} was validated, the topology is of epoch {state.topology.epoch}"
        judged.broken(Rule.TOPOLOGY_EPOCH_WRONG, record.at, None, detail)
    if state.topology is not None and state.metadata_hash != before.metadata_hash:
        _internal_topic_configs(judged, state.topology, record.at)


def _internal_topic_configs(judged: JudgedGroup, topology: Topology, at: LogPosition) -> None:
    """An internal topic that exists has the configurations of the topology, by whichever clock (KIP-1071)."""
    topics = judged.topics
    if topics is None or not topics.complete or topics.doubt(at.timestamp_ms) is not None:
        return
    around = topics.window(at.timestamp_ms - CLOCK_TOLERANCE_MS, at.timestamp_ms + CLOCK_TOLERANCE_MS)
    for subtopology in topology.subtopologies:
        for topic in (*subtopology.repartition_source_topics, *subtopology.state_changelog_topics):
            there = [interval.version for interval in around if topic.name in interval.image.by_name]
            if topics.topic_at(topic.name, at.timestamp_ms) is None:
                continue
            versions = [topics.config(TOPIC_RESOURCE, topic.name, version) for version in there]
            for name, wanted in sorted(topic.configs.items()):
                actual = {configs.get(name, DEFAULT_TOPIC_CONFIGS.get(name)) for configs in versions}
                if wanted not in actual and None not in actual:
                    origin = "" if name in versions[0] else " by default"
                    in_force = ", ".join(sorted(map(str, actual))) + origin
                    detail = f"{topic.name}: {name} is {in_force}, the topology gives {wanted}"
                    judged.broken(Rule.INTERNAL_TOPIC_CONFIG_DIFFERS, at, None, detail)


def on_streams_target(judged: JudgedGroup, record: StreamsGroupTargetAssignmentMemberRecord, before: None) -> None:
    """Judge a target of a streams group: its tasks belong to subtopologies that exist.

    The tasks of a classic group that becomes a streams group are copied before its topology is written.
    """
    on_target(STREAMS_KIND, judged, record)
    state, member_id = judged.group.state, record.key["memberId"]
    if record.value is None or not isinstance(state, StreamsGroup) or not judged.facts.knows(TOPOLOGY):
        return
    if state.topology is None and judged.operation.converted:
        return
    known = (
        {subtopology.subtopology_id for subtopology in state.topology.subtopologies}
        if state.topology is not None
        else set()
    )
    strange = sorted({name for _, name in STREAMS_KIND.wanted(state.targets[member_id])} - known)
    if strange:
        judged.broken(Rule.TASK_OUTSIDE_TOPOLOGY, record.at, member_id, f"the topology has no subtopology {strange[0]}")
