"""Rules of offset commits. A commit record has no field for a member, so they judge who may have made the commit."""

from coordinator_core.audit.rules.judged_group import JudgedGroup
from coordinator_core.groups.classic.state import ClassicGroup
from coordinator_core.groups.consumer.state import ConsumerGroup
from coordinator_core.groups.group import GroupState
from coordinator_core.groups.rules import EPOCH, WHOLE, Rule
from coordinator_core.groups.share.state import ShareGroup
from coordinator_core.groups.streams.sources import readers
from coordinator_core.groups.streams.state import StreamsGroup
from coordinator_core.history.held_units import asked_for, given_to
from coordinator_core.history.holdings import WorkUnit
from coordinator_core.record_fields.offset_commit import OffsetCommitRecord
from coordinator_core.records import CoordinatorRecord


def on_commit(judged: JudgedGroup, record: OffsetCommitRecord) -> None:
    """Judge a committed offset: its partition has an owner, if the group's members own any partition of the topic.

    Between two other records of the group no member's work changes, so each partition is reported once: feeding the
    first and the last commit of each partition in between is enough.
    """
    if record.value is None:
        return
    state = judged.group.state
    if state is None or not state.members or not judged.facts.knows(EPOCH):
        return
    key = record.key
    name = f"{key['topic']}-{key['partition']}"
    if isinstance(state, ShareGroup):
        _tell(judged, Rule.COMMIT_IN_SHARE_GROUP, record, name, name)
        return
    if isinstance(state, StreamsGroup):
        if not _may_read(state, key["topic"]):
            detail = f"no subtopology of the group reads {key['topic']}"
            _tell(judged, Rule.COMMIT_BY_NO_SUBSCRIBER, record, name, detail)
        return
    unit: WorkUnit | None = None
    if isinstance(state, ClassicGroup):
        if state.protocol_type == "consumer":
            unit = WorkUnit("partition", key["topic"], key["partition"])
    elif isinstance(state, ConsumerGroup):
        topic_id = record.value.get("topicId")
        if topic_id is not None and judged.facts.knows(WHOLE):  # a member that was not seen may own it
            unit = WorkUnit("partition", topic_id, key["partition"])
    if unit is None or judged.current.has_holder(unit) or _may_have(state, unit):
        return
    if any(unit.resource in held for held in judged.current.held.values()):
        _tell(
            judged, Rule.COMMIT_BY_NO_OWNER, record, name, f"no member has {name}, unlike other partitions of the topic"
        )
    elif not _may_subscribe(state, key["topic"]):
        detail = f"no member subscribes to {key['topic']}, or has a partition of it"
        _tell(judged, Rule.COMMIT_BY_NO_SUBSCRIBER, record, name, detail)


def _may_subscribe(state: GroupState, topic: str) -> bool:
    """Whether a member subscribes to the topic, by name or by a regular expression, or its subscription is unknown."""
    if isinstance(state, ClassicGroup):
        asked = (asked_for(state, member) for member in state.members.values())
        return any(names is None or topic in names.topics for names in asked)
    if not isinstance(state, ConsumerGroup):
        return True
    regexes = {member.subscribed_topic_regex for member in state.members.values()} - {None, ""}
    return (
        any(topic in member.subscribed_topic_names for member in state.members.values())
        or not all(member.has_metadata for member in state.members.values())
        or any(regex not in state.regexes or topic in state.regexes[regex].topics for regex in regexes)
    )


def _may_read(state: StreamsGroup, topic: str) -> bool:
    """Whether a member of a streams group may have a task that reads the topic: not all of them may have the topology
    of the group yet, or be known.
    """
    topology = state.topology
    if topology is None or any(member.topology_epoch != topology.epoch for member in state.members.values()):
        return True
    return bool(readers(topology, topic))


def _may_have(state: GroupState, unit: WorkUnit) -> bool:
    """Whether a member had the unit when it joined the generation: it gives it up now, and commits as it does. Or an
    assignment cannot be read.

    Cooperative consumers and Kafka Streams learn from the assignment what they lose (KIP-429); until the next
    generation no other member has it.
    """
    if not isinstance(state, ClassicGroup):
        return False
    for member in state.members.values():
        asked = asked_for(state, member)
        if (asked is not None and unit in asked.owned) or not given_to(state, member).is_whole:
            return True
    return False


def _tell(judged: JudgedGroup, rule: Rule, record: CoordinatorRecord, name: str, detail: str) -> None:
    if name not in judged.facts.told:
        judged.facts.told.append(name)
        judged.broken(rule, record.at, None, detail)
