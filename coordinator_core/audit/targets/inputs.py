"""The assignor's input as the coordinator had it, from the group's state and the operation that used it."""

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Final, NamedTuple

from coordinator_core.assignors.coordinator_view import Process, StreamsView, Subscriber, SubscriptionView
from coordinator_core.assignors.inputs import AssignedGroupType as AssignedType
from coordinator_core.assignors.inputs import GroupSpecs, StreamsGroupSpec, SubtopologyTasks
from coordinator_core.audit.settings import AuditSettings
from coordinator_core.audit.targets.operation import TargetOperation
from coordinator_core.audit.targets.verdict import TOPICS_MISSING, WHERE_TOPICS_ARE
from coordinator_core.cluster.image import TopicImage
from coordinator_core.cluster.topic_history import TopicHistory
from coordinator_core.groups.consumer.state import ConsumerGroup
from coordinator_core.groups.epoch_records import instance_id_of
from coordinator_core.groups.group import GroupState
from coordinator_core.groups.share.state import ShareGroup
from coordinator_core.groups.streams.configs import assignor_name, is_stateful, streams_configs
from coordinator_core.groups.streams.sources import topic_names
from coordinator_core.groups.streams.state import StreamsGroup, Topology
from coordinator_core.groups.streams.topology import configure
from coordinator_core.groups.subscribed_topics import image_of
from coordinator_core.history.topics_of_epochs import NO_TOPICS_HASH, matching_hash
from coordinator_core.java.hash_codes import STRING
from coordinator_core.java.order import hash_order
from coordinator_core.record_fields.consumer_group import ConsumerGroupMemberMetadataValue
from coordinator_core.record_fields.share_group import ShareGroupMemberMetadataValue
from coordinator_core.record_fields.streams_group import StreamsGroupMemberMetadataValue
from coordinator_core.records import LogPosition

EpochState = ConsumerGroup | ShareGroup | StreamsGroup


class Topics(NamedTuple):
    """The topics that the coordinator used; ``proven`` by its metadata hash, None where its records have none."""

    image: TopicImage
    at: LogPosition | None
    proven: bool | None


def subscriber(value: ConsumerGroupMemberMetadataValue | ShareGroupMemberMetadataValue) -> Subscriber:
    """Return a member of a consumer or share group from its metadata record."""
    return Subscriber(
        tuple(value["subscribedTopicNames"]),
        (value["subscribedTopicRegex"] or None) if "subscribedTopicRegex" in value else None,
        instance_id_of(value),
        value["rackId"],
    )


def process(value: StreamsGroupMemberMetadataValue) -> Process:
    """Return a member of a streams group from its metadata record."""
    tags = {tag["key"]: tag["value"] for tag in value["clientTags"]}
    return Process(value["processId"], value["instanceId"], value["rackId"], tags)


def subscribed_names(state: EpochState, history: TopicHistory | None) -> set[str]:
    """Return the names of the topics that the group's metadata hash covers, as far as they existed."""
    if isinstance(state, StreamsGroup):
        return topic_names(state.topology, history)
    return {name for member_id in state.members for name in topics_of_member(state, member_id)}


def topics_of_member(state: ConsumerGroup | ShareGroup, member_id: str) -> Collection[str]:
    """Return the topics that a member subscribes to, by name or by a regular expression that was resolved."""
    names = state.members[member_id].subscribed_topic_names
    if not isinstance(state, ConsumerGroup):
        return names
    resolved = state.regexes.get(state.members[member_id].subscribed_topic_regex or "")
    return names if resolved is None else [*names, *resolved.topics]


def topics_used(
    state: EpochState, at: LogPosition, history: TopicHistory | None, settings: AuditSettings
) -> Topics | str:
    """Return the topics at that time: proven by the group's hash, or as brokers before 4.1, or of KIP-1071, recorded
    them with the group; a text says what is missing to know them.
    """
    if isinstance(state, ConsumerGroup | StreamsGroup) and state.subscription_metadata is not None:
        for name, topic in state.subscription_metadata.items():
            problem = settings.plausible.topic_problem(name, topic.partitions)
            if problem is not None:
                return f"a plausible number of partitions: {problem}"
        return Topics(image_of(state.subscription_metadata), None, None)
    names = subscribed_names(state, history)
    if not names and state.metadata_hash in (None, NO_TOPICS_HASH):
        return Topics(TopicImage.of(()), None, None)
    if history is None or not len(history):
        return TOPICS_MISSING
    if state.metadata_hash is None:
        return "metadata hash: the record of the group's epoch is not in the log, or has none"
    matching = matching_hash(history, state.metadata_hash, names, at.timestamp_ms, settings.clock_slack_ms)
    if matching is None and at.timestamp_ms < 0:
        return "topics of that time: records without times do not say which of their versions was used"
    if matching is None:
        return (
            f"topics of that time: no known version has the group's metadata hash {state.metadata_hash}; of the time "
            f"before, {WHERE_TOPICS_ARE}"
        )
    return Topics(matching.image, matching.at, True)


STREAMS_ASSIGNOR: Final = "streams.assignor.name"
"""The setting of a streams group that names its assignor (since 4.4)."""


def chosen_assignor(history: TopicHistory | None, group_id: str, time_ms: int) -> str | None:
    """Return the assignor that a streams group's settings name at a time; None: they name none, or are not known."""
    return None if history is None else history.group_config(group_id, STREAMS_ASSIGNOR, time_ms)


def assignor_of(state: GroupState, default: str, *, chosen: str | None = None, kip_1071: bool = False) -> str:
    """Return the name of the assignor that the group uses: the one most members ask for, else the broker's
    default (KIP-848); that of the topology and the configurations in a streams group (KIP-1071), where ``chosen`` is
    the group's setting (``STREAMS_ASSIGNOR``).
    """
    if isinstance(state, ShareGroup):
        return "simple"
    if isinstance(state, StreamsGroup):
        if chosen:
            return chosen
        return assignor_name(state.last_assignment_configs, stateful=is_stateful(state.topology), kip_1071=kip_1071)
    assert isinstance(state, ConsumerGroup)
    votes = Counter(member.server_assignor for member in state.members.values() if member.server_assignor)
    if not votes:
        return default
    # Of equal votes Kafka takes the first in the order of its map, which Java's hash decides.
    return max(hash_order(STRING, list(votes)), key=lambda name: votes[name])


def assignable(state: EpochState) -> Mapping[str, set[int]] | None:
    """Return the partitions of a share group whose state is initialised, by topic id; None: all may be assigned."""
    if not isinstance(state, ShareGroup):
        return None
    if state.state_partitions is None:
        return {}
    return {topic_id: set(topic.partitions) for topic_id, topic in state.state_partitions.initialized.items()}


def judgements(view: SubscriptionView, operation: TargetOperation) -> list[bool]:
    """Return the possible values of the coordinator's flag "all subscriptions are the same", the likeliest first.

    In an operation with an epoch record the coordinator computed the flag again, the joining member included. In others
    the flag keeps its value, or was computed again because the coordinator read the topics and found them unchanged.
    """
    joining = _joining(operation)
    recomputed = view.rejudged() if joining is None else view.judge(*joining)
    return [recomputed] if operation.epoch is not None else list(dict.fromkeys((view.homogeneous, recomputed)))


def _joining(operation: TargetOperation) -> tuple[str, Subscriber] | None:
    """Return the member of a consumer or share group that joins or changes in the operation; None if none does."""
    member = operation.member
    if member is None or member.value is None or "processId" in member.value:
        return None
    return member.key["memberId"], subscriber(member.value)


def subscription_spec(
    view: SubscriptionView,
    operation: TargetOperation,
    image: TopicImage,
    initialised: Mapping[str, set[int]] | None,
    names: Mapping[str, tuple[str, ...]],
    *,
    homogeneous: bool,
) -> GroupSpecs:
    """Return the assignor's input in a consumer or share group.

    ``homogeneous`` is the coordinator's flag "all subscriptions are the same". ``names`` has subscriptions in another
    order than the record's. A member that joins a share group enters the map of members before the assignor runs.
    """
    updates: dict[str, Subscriber | None] = {}
    entered: tuple[str, ...] = ()
    joining = _joining(operation)
    if joining is not None:
        member_id, updates[member_id] = joining
        if view.type is AssignedType.SHARE and member_id not in view.members:
            entered = (member_id,)
    for member_id, named in names.items():
        updates[member_id] = replace(updates.get(member_id) or view.members[member_id], names=named)
    if operation.replaced is not None:
        updates.setdefault(operation.replaced, None)
    return view.spec(image, updates, homogeneous=homogeneous, assignable=initialised, entered=entered)


def streams_spec(
    view: StreamsView, operation: TargetOperation, state: StreamsGroup, image: TopicImage, *, kip_1071: bool
) -> StreamsGroupSpec:
    """Return the assignor's input in a streams group; without subtopologies if the topology is not ready.

    It is without task offsets, which are in no record. Raises InputError for a configuration that is not a number.
    """
    updates: dict[str, Process | None] = {}
    member = operation.member
    if member is not None and member.value is not None and "processId" in member.value:
        updates[member.key["memberId"]] = process(member.value)
    if operation.replaced is not None:
        updates.setdefault(operation.replaced, None)
    subtopologies: tuple[SubtopologyTasks, ...] = ()
    if state.topology is not None and state.is_validated is not False:
        subtopologies = tasks_of(state.topology, image) or ()
    spec = view.spec(subtopologies, streams_configs(state.last_assignment_configs), updates)
    return replace(spec, stale=stale_members(state)) if kip_1071 else spec


def tasks_of(topology: Topology, image: TopicImage) -> tuple[SubtopologyTasks, ...] | None:
    """Return the tasks of a topology with these topics; None if the topology is not ready (KIP-1071)."""
    configured = configure(topology, image)
    return None if configured.problem is not None else configured.tasks


def stale_members(state: StreamsGroup) -> frozenset[str]:
    """Return the members whose topology is older than the group's (KIP-1071)."""
    if state.topology is None:
        return frozenset()
    epoch = state.topology.epoch
    return frozenset(name for name, member in state.members.items() if (member.topology_epoch or 0) < epoch)
