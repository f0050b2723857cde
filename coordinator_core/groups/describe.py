"""A group as an operator sees it: one object in the form of Kafka's Admin client, made from the log alone."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from coordinator_core.cluster.broker_history import NO_LEADER
from coordinator_core.cluster.image import TopicImage
from coordinator_core.cluster.topic_history import GROUP_RESOURCE, TopicHistory
from coordinator_core.groups.certainty import CERTAIN, Certainty
from coordinator_core.groups.classic import describe as classic
from coordinator_core.groups.classic.state import ClassicGroup
from coordinator_core.groups.classic.workers import is_connect_group
from coordinator_core.groups.connect import describe as connect
from coordinator_core.groups.connect.state import ConnectGroup
from coordinator_core.groups.consumer import describe as consumer
from coordinator_core.groups.consumer.state import ConsumerGroup
from coordinator_core.groups.described import (
    DescribedListing,
    DescribedNode,
    DescribedOffset,
    DescribedTopologyCheck,
    Description,
)
from coordinator_core.groups.group import Group, GroupState
from coordinator_core.groups.log_partition import log_partition_of
from coordinator_core.groups.member_clients import clients_of, is_of_consumers
from coordinator_core.groups.migration import describe_migration
from coordinator_core.groups.offsets import Commits, GroupOffsets, TopicPartition
from coordinator_core.groups.partition_names import topics_in_doubt, unnamed_topics, with_names
from coordinator_core.groups.record_types import CONSUMER_RECORDS, SHARE_RECORDS, STREAMS_RECORDS, RecordTypes
from coordinator_core.groups.setting_bounds import WITH_SETTINGS, OfBrokers, describe_settings
from coordinator_core.groups.share import describe as share
from coordinator_core.groups.share.partition_offsets import (
    describe_share_offsets,
    describe_share_partitions,
    unknown_share_offsets,
)
from coordinator_core.groups.share.state import ShareGroup
from coordinator_core.groups.share.state_log import ShareStateLog
from coordinator_core.groups.streams import describe as streams
from coordinator_core.groups.streams.readiness import FITS, READY, check_topology
from coordinator_core.groups.streams.state import StreamsGroup, StreamsGroupState
from coordinator_core.records import LOG_TOPICS, ConnectRecordType, RecordType

CERTAIN_GROUP = "certain"
KNOWN_IN_PART = "known in part"
POSSIBLY_THERE = "possibly there"

LAST_REBALANCE = "last completed rebalance"


def _fields_of(types: RecordTypes) -> dict[int, str]:
    return {
        types.epoch: "groupEpoch",
        types.target_epoch: "targetAssignmentEpoch",
        types.member: "metadata",
        types.current: "assignment",
    }


_FIELDS: Mapping[type[GroupState], Mapping[int, str]] = {
    ConsumerGroup: {**_fields_of(CONSUMER_RECORDS), CONSUMER_RECORDS.target: "targetAssignment"},
    ShareGroup: {**_fields_of(SHARE_RECORDS), RecordType.SHARE_GROUP_STATE_PARTITION_METADATA: "share_offsets"},
    StreamsGroup: {
        **_fields_of(STREAMS_RECORDS),
        STREAMS_RECORDS.target: "targetAssignment",
        RecordType.STREAMS_GROUP_TOPOLOGY: "subtopologies",
    },
    ConnectGroup: {
        ConnectRecordType.GROUP_METADATA: "groupEpoch",
        ConnectRecordType.TARGET_ASSIGNMENT: "targetAssignmentEpoch",
        ConnectRecordType.CONNECTORS_TASKS_METADATA: "work",
        ConnectRecordType.CONFIGURATION: "scheduledRebalanceMaxDelayMs",
        ConnectRecordType.MEMBER_METADATA: "metadata",
        ConnectRecordType.CURRENT_MEMBER_ASSIGNMENT: "assignment",
    },
}
"""The fields of a description, as a reader of Admin's knows them, by the record that they come from."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a description needs beyond the group's own log. None: not given, and what depends on it is null.

    ``topics`` names topic ids, ``share_state`` has the offsets of share groups, ``data_end`` the end offsets of data
    partitions. ``default_assignor`` is the first of the brokers' ``group.consumer.assignors``, which no record has,
    ``oldest_broker`` the lowest of the highest metadata versions that they support; None: brokers are assumed to be
    newer. ``settings_of`` returns the configurations that a group itself has in the metadata log, None where that log
    does not show them at the moment; ``in_snapshots`` those that snapshots show, the brokers' defaults included;
    ``of_brokers`` a setting of the brokers, None if no snapshot shows it.
    ``leader_of`` returns the broker that leads a partition of a log of groups, -1: none does.
    """

    topics: TopicImage | None = None
    share_state: ShareStateLog | None = None
    data_end: Mapping[TopicPartition, int] | None = None
    default_assignor: str | None = None
    oldest_broker: int | None = None
    settings_of: Callable[[str], Mapping[str, str] | None] = lambda group_id: {}
    in_snapshots: Callable[[str], Mapping[str, str]] = lambda group_id: {}
    of_brokers: OfBrokers = lambda name: None
    leader_of: Callable[[str, int], int | None] = lambda topic, partition: None

    def with_brokers(
        self, topics: TopicHistory | None, time_ms: int | None, upto_ms: int | None = None
    ) -> "Surroundings":
        """Return the same with what the history shows of the brokers at a time (None: at its end), be there topics or
        not.

        ``upto_ms``: the moment may be as late as this. Settings of a group that changed by then are unknown.
        """
        if topics is None:
            return replace(self, settings_of=lambda group_id: None)
        default = topics.default_assignor(time_ms) or self.default_assignor
        version = len(topics) - 1 if time_ms is None else topics.version_at(time_ms)
        last = version if upto_ms is None else topics.version_at(upto_ms)
        # Records that are missing of the metadata log may have changed a setting, or who leads a partition.
        is_whole = self.topics is not None and self.topics.is_whole

        def settings_of(group_id: str) -> Mapping[str, str] | None:
            if not is_whole or topics.changes_config(GROUP_RESOURCE, group_id, version, last):
                return None
            return topics.config(GROUP_RESOURCE, group_id, version)

        return replace(
            self,
            oldest_broker=topics.oldest_broker(time_ms),
            default_assignor=default,
            settings_of=settings_of,
            in_snapshots=lambda group_id: topics.snapshots.of_group(group_id, time_ms),
            of_brokers=lambda name: topics.snapshots.of_brokers(name, time_ms),
            leader_of=lambda topic, partition: (
                topics.brokers.leader_at(topic, partition, time_ms, upto_ms) if is_whole else None
            ),
        )

    def leader_for(self, group: Group) -> int | None:
        """Return the broker that leads the partition of the group; -1: none does, None: not known."""
        log = LOG_TOPICS[group.family]
        topic = None if self.topics is None else self.topics.by_name.get(log)
        return None if topic is None else self.leader_of(log, log_partition_of(group.group_id, topic.partitions))

    def coordinator_of(self, group: Group) -> DescribedNode | None:
        """Return the coordinator of the group; None: there is none, or it is not known."""
        broker = self.leader_for(group)
        return None if broker is None or broker == NO_LEADER else {"id": broker}


def describe(group: Group, offsets: GroupOffsets, around: Surroundings, certainty: Certainty = CERTAIN) -> Description:
    """Return the group with the parts that Admin has for its type: ``listing``, its ``describe_...``, and its
    offsets.

    ``topology_check`` is added, which Admin does not have, where the topics do not fit the topology of a streams group:
    the status (null: unknown) and the topics, as a heartbeat response names them.
    ``settings`` are the group's own configurations, if it has any; null: the metadata log does not show them at the
    moment. ``migration`` and ``join_traffic`` are added for classic groups: whether the group can move to its new
    protocol, and how many bytes one rebalance sends.
    ``clients`` is added for groups of consumers with members: the client library of each, by member id.
    ``certainty`` and the fields after it say which of them are unknown. ``stateAsOf`` says of a classic group
    that its state is that of its last completed rebalance.
    """
    state, group_id = group.state, group.group_id
    if isinstance(state, ShareGroup) and state.state_partitions is not None:
        # The group's own record names the topics that it initialised: their ids need no metadata log.
        around = replace(around, topics=with_names(around.topics, state.state_partitions.names))
    if isinstance(state, ShareGroup) and around.share_state is not None:
        unknown = unknown_share_offsets(group_id, state, around.share_state, around.topics)
        certainty = replace(certainty, unknown_offsets=certainty.unknown_offsets | set(unknown))
    described: Description = {
        "listing": listing(group, certainty),
        "stateAsOf": state_as_of(group),
        "certainty": certainty_label(group, certainty),
        "unknownFields": _unknown_fields(group, around, certainty),
        "unknownMembers": list(certainty.unknown_members),
        "unknownOffsets": [str(partition) for partition in sorted(certainty.unknown_offsets)],
        "incompleteLists": _incomplete_lists(group, certainty),
    }
    _note_surroundings(described, group, around)
    if state is not None and state.members and is_of_consumers(state):
        described["clients"] = {
            member_id: {
                "client": told.name,
                "certainty": told.certainty.value,
                "release": told.release,
                "leads": isinstance(state, ClassicGroup) and state.leader == member_id,
            }
            for member_id, told in clients_of(state).items()
        }
    if isinstance(state, ClassicGroup):
        _describe_classic(described, group, state, around)
    elif isinstance(state, ConnectGroup):
        described["describe_connect"] = connect.describe_connect(group_id, state, certainty)
    elif isinstance(state, ConsumerGroup):
        described["describe_consumer"] = consumer.describe_consumer(
            group_id,
            state,
            around.topics,
            around.default_assignor,
            certainty,
            coordinator=around.coordinator_of(group),
            tells_protocol=around.oldest_broker is None or around.oldest_broker >= consumer.TELLS_PROTOCOL,
        )
    elif isinstance(state, StreamsGroup):
        described["describe_streams"] = streams.describe_streams(
            group_id, state, around.topics, certainty, coordinator=around.coordinator_of(group), reloaded=group.reloaded
        )
        if (check := _topology_check(state, around.topics, certainty)) is not None:
            described["topology_check"] = check
    elif isinstance(state, ShareGroup):
        _describe_share(described, group, state, around, certainty)
    if commits_offsets(state):
        described["offsets"] = describe_offsets(offsets.committed)
        # An open transaction of which nothing is left may hold back any of them.
        described["offsets_stable"] = describe_offsets(offsets.stable()) if certainty.transactions_are_known else None
    return described


def _describe_classic(described: Description, group: Group, state: ClassicGroup, around: Surroundings) -> None:
    group_id, coordinator = group.group_id, around.coordinator_of(group)
    described["describe_classic"] = classic.describe_classic(group_id, state, coordinator)
    if classic.is_consumer_group(state):
        described["describe_consumer"] = classic.describe_consumer(group_id, state, coordinator)
    if (migration := describe_migration(state, around.of_brokers)) is not None:
        described["migration"] = migration
    if state.members:
        described["join_traffic"] = classic.join_traffic(state)
    if is_connect_group(state):
        described["describe_connect"] = connect.describe_classic_connect(group_id, state, group_state(group))


def _describe_share(
    described: Description, group: Group, state: ShareGroup, around: Surroundings, certainty: Certainty
) -> None:
    group_id = group.group_id
    begins_at_zero = around.oldest_broker is not None and around.oldest_broker < share.BEGINS_AT_ONE
    described["describe_share"] = share.describe_share(
        group_id,
        state,
        around.topics,
        certainty,
        coordinator=around.coordinator_of(group),
        begins_at_zero=begins_at_zero,
    )
    if around.share_state is not None:
        described["share_offsets"] = describe_share_offsets(
            group_id, state, around.share_state, around.topics, around.data_end
        )
        described["share_partitions"] = describe_share_partitions(group_id, state, around.share_state, around.data_end)


def _note_surroundings(described: Description, group: Group, around: Surroundings) -> None:
    """Add what comes from the metadata log, or what is not known without it."""
    if unnamed := unnamed_topics(_assignments(group.state), around.topics):
        described["unnamedTopics"] = unnamed
    if doubted := topics_in_doubt(_assignments(group.state), around.topics):
        described["topicsInDoubt"] = doubted
    settings = around.settings_of(group.group_id)
    if settings:
        described["settings"] = describe_settings(group.type, settings, around.of_brokers)
    elif settings is None and group.type in WITH_SETTINGS:
        described["settings"] = None


def _assignments(state: GroupState | None) -> Iterator[Mapping[str, Iterable[int]]]:
    """Yield the assignments of a group that name topics by their ids."""
    if isinstance(state, ConsumerGroup):
        yield from state.targets.values()
        for member in state.members.values():
            yield from (member.assigned, member.pending_revocation)
    elif isinstance(state, ShareGroup):
        yield from (member.assigned for member in state.members.values())


def _unknown_fields(group: Group, around: Surroundings, certainty: Certainty) -> list[str]:
    """Return the fields that are null although Admin has them: of missing records, and of an unknown setting."""
    names = unknown_fields(group, certainty)
    needs_default = isinstance(group.state, ConsumerGroup) and consumer.preferred_assignor(group.state) is None
    if needs_default and around.default_assignor is None:
        names = [*names, "partitionAssignor"]
    if group.type in WITH_SETTINGS and around.settings_of(group.group_id) is None:
        names = [*names, "settings"]
    state = group.state
    # A partition without a leader (-1) is known to have no coordinator: null, and not unknown.
    if state is not None and not isinstance(state, ConnectGroup) and around.leader_for(group) is None:
        names = [*names, "coordinator"]
    if isinstance(state, StreamsGroup):
        names = [*names, *streams.unlogged_fields(state)]
    if isinstance(state, StreamsGroup) and not streams.knows_subtopologies(
        state, around.topics, reloaded=group.reloaded
    ):
        names = [*names, "subtopologies"]
    return sorted({*names})


def _topology_check(
    group: StreamsGroup, topics: TopicImage | None, certainty: Certainty
) -> DescribedTopologyCheck | None:
    """Return what keeps a group with members from running on the topics of the moment.

    None: nothing does, it has no members, or its topology at the moment is not certain.
    """
    if not group.members or not certainty.knows(streams.TOPOLOGY):
        return None
    check = check_topology(group, topics, complete=topics is None or topics.is_whole)
    is_ready = streams.group_state(group, certainty) is not StreamsGroupState.NOT_READY
    if is_ready and check.status in (None, READY):
        return None
    detail = FITS if check.status == READY else check.detail
    return {"detail": detail, "status": None if check.status == READY else check.status}


def commits_offsets(state: GroupState | None) -> bool:
    """Return whether a group of this state may have committed offsets; share groups have start offsets."""
    return not isinstance(state, ShareGroup | ConnectGroup)


def _incomplete_lists(group: Group, certainty: Certainty) -> list[str]:
    """Return the lists of a description that may lack something that left no trace in the log."""
    lists = {"members": certainty.all_members}
    if commits_offsets(group.state):
        lists |= {"offsets": certainty.all_offsets, "offsets_stable": certainty.all_offsets}
    return [name for name, is_whole in lists.items() if not is_whole]


def certainty_label(group: Group, certainty: Certainty) -> str:
    """Return how certain the group is: one of ``CERTAIN_GROUP``, ``KNOWN_IN_PART`` and ``POSSIBLY_THERE``."""
    if not certainty.exists:
        return POSSIBLY_THERE
    is_known = certainty.members_are_known and not certainty.unknown_offsets and not unknown_fields(group, certainty)
    return CERTAIN_GROUP if is_known else KNOWN_IN_PART


def unknown_fields(group: Group, certainty: Certainty) -> list[str]:
    """Return the fields of a group's description that are null because records about them may be missing."""
    state = group.state
    if state is None:
        return ["groupState", "type"]
    named = ((key, _FIELDS.get(type(state), {}).get(key.type)) for key in certainty.unknown)
    members = state.members
    names = [
        f"{key.about}.{name}" if key.about else name
        for key, name in named
        if name is not None and (not key.about or key.about in members)
    ]
    if group_state(group, certainty) is None:
        names.append("groupState")
    if not certainty.commits_hold:
        names.append("offsets")
    if isinstance(state, ConsumerGroup) and not consumer.knows_votes(state, certainty):
        names.append("partitionAssignor")
    if isinstance(state, ConnectGroup) and not connect.knows_assignors(state, certainty):
        names.append("partitionAssignor")
    return sorted(names)


def state_as_of(group: Group) -> str | None:
    """Return what the state of a group dates from; None: the moment.

    The log of a classic group has completed rebalances only: one that has begun since is in the coordinator's memory.
    A group that never had a generation has no rebalance.
    """
    return LAST_REBALANCE if isinstance(group.state, ClassicGroup) and group.state.generation else None


def listing(group: Group, certainty: Certainty = CERTAIN) -> DescribedListing:
    """Return the group's entry in ``Admin.listGroups``; a type that the log has not shown is null."""
    state = group.state
    if isinstance(state, ClassicGroup):
        protocol: str | None = state.protocol_type or ""
    else:
        protocol = None if state is None else str(group.type).lower()
    return {
        "groupId": group.group_id,
        "groupState": group_state(group, certainty),
        "isSimpleConsumerGroup": None if state is None else protocol == "",
        "protocol": protocol,
        "type": group.type,
    }


_STATE_OF: Mapping[type[GroupState], Callable[[Any, Certainty], str | None]] = {
    ConsumerGroup: consumer.group_state,
    ShareGroup: share.group_state,
    StreamsGroup: streams.group_state,
    ConnectGroup: connect.group_state,
}


def group_state(group: Group, certainty: Certainty = CERTAIN) -> str | None:
    """Return the state of a group of any type, as its protocol defines it; None if the log does not show it."""
    state = group.state
    if state is None or isinstance(state, ClassicGroup):
        return None if state is None else classic.group_state(state)
    return _STATE_OF[type(state)](state, certainty)


def describe_offsets(commits: Commits) -> dict[str, DescribedOffset | None]:
    """Return committed offsets as ``Admin.listConsumerGroupOffsets`` gives them: null where the offset is negative."""
    return {
        str(partition): None
        if commit.offset < 0
        else {"leaderEpoch": commit.leader_epoch, "metadata": commit.metadata, "offset": commit.offset}
        for partition, commit in sorted(commits.items())
    }
