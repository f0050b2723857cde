"""Targets that no assignor made: copies, when a group changes between classic and consumer protocol (KIP-848)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from coordinator_core.assignors.coordinator_view import SubscriptionView
from coordinator_core.audit.rows import TargetAuditRow, Verdict
from coordinator_core.audit.targets.conversion_rows import divergent_copy, downgraded_row, upgraded_row
from coordinator_core.audit.targets.gap import WHERE_TOPICS_ARE, GroupGap
from coordinator_core.audit.targets.group_view import recorded_partitions
from coordinator_core.audit.targets.operation import TargetOperation
from coordinator_core.audit.targets.verdict import Judgement, differences, identical, undecided
from coordinator_core.cluster.image import TopicImage
from coordinator_core.cluster.topic_history import TopicHistory
from coordinator_core.errors import DecodeError
from coordinator_core.groups.consumer_protocol import assigned_partitions
from coordinator_core.groups.epoch_records import MemberTargetRecord
from coordinator_core.groups.group_type import GroupType
from coordinator_core.groups.record_types import CONSUMER_RECORDS
from coordinator_core.record_fields.classic_group import GroupMetadataRecord
from coordinator_core.record_fields.consumer_group import ConsumerGroupMemberMetadataValue
from coordinator_core.records import AnyRecord, CoordinatorRecord

Named = dict[str, set[int]]
"""A member's partitions by topic name."""

TOPIC_NAMES_MISSING = f"names of topic ids: {WHERE_TOPICS_ARE}"


class _Comparison(NamedTuple):
    """What members were to have and what was recorded, by member; None as partitions: a topic id without a known name.

    ``fitted`` says where the expected partitions come from. ``unreadable`` says why an assignment cannot be read.
    """

    expected: Mapping[str, Named | None]
    recorded: Mapping[str, Named | None]
    fitted: str
    unreadable: DecodeError | None = None


def upgrade_row(
    opened: CoordinatorRecord,
    operation: TargetOperation,
    classic: Mapping[str, bytes],
    instances: Mapping[str, str],
    topics: TopicHistory | None,
    clock_slack_ms: int,
    gap: GroupGap | None,
) -> TargetAuditRow:
    """Return the row of the first target of a consumer group converted from a classic one.

    ``classic`` has the last assignments of its members, by member id and by instance id; ``instances`` has the instance
    ids of the members after the conversion.
    """
    compared = _upgraded(operation, classic, instances, topics)
    outcome = _unreadable(compared)
    if outcome is None:
        names = {topic for held in compared.expected.values() if held for topic in held}
        existing = (names & image.by_name.keys() for image in _images(topics, operation.end, clock_slack_ms, names))
        outcome = _judge(compared, existing, gap, operation.end)
        if outcome.verdict is Verdict.DIVERGENT and not any(compared.recorded.values()):
            # A group converted in the middle of a rebalance has nothing assigned at all.
            outcome = identical("nothing, as the classic group was rebalancing")
    return upgraded_row(opened, operation, GroupType.CONSUMER, len(compared.recorded), outcome)


def _upgraded(
    operation: TargetOperation, classic: Mapping[str, bytes], instances: Mapping[str, str], topics: TopicHistory | None
) -> _Comparison:
    """Compare the target records with the classic group's assignments.

    A static member may have come back under another id, which the log does not say; if it had expired before, it has
    nothing.
    """
    recorded = {target.key["memberId"]: _by_name(_partitions(target), topics) for target in operation.targets}
    expected: dict[str, Named | None] = {}
    fitted = "the classic group's assignment"
    try:
        for member, held in recorded.items():
            assignment = classic.get(member, classic.get(instances.get(member, "")))
            if assignment and member not in classic and not held:
                assignment, fitted = None, f"{fitted}; static member {member} had expired and joined again"
            expected[member] = _assigned(assignment)
    except DecodeError as error:
        return _Comparison({}, recorded, fitted, error)
    return _Comparison(expected, recorded, fitted)


def downgrade_row(
    record: GroupMetadataRecord,
    view: SubscriptionView,
    batch: Iterable[AnyRecord],
    topics: TopicHistory | None,
    clock_slack_ms: int,
    gap: GroupGap | None,
) -> TargetAuditRow:
    """Return the row of the first generation of a classic group converted from a consumer group.

    ``view`` is the consumer group before ``batch``, which has the records of this operation before ``record``.
    """
    targets: dict[str, Mapping[str, Iterable[int]]] = dict(view.targets)
    static = dict(view.static)
    for earlier in batch:
        if earlier.type == CONSUMER_RECORDS.target and earlier.value is not None:
            targets[earlier.key["memberId"]] = _partitions(earlier)
        elif earlier.type == CONSUMER_RECORDS.member and earlier.value is not None:
            member: ConsumerGroupMemberMetadataValue = earlier.value
            if member["instanceId"]:
                static.setdefault(member["instanceId"], earlier.key["memberId"])
    compared = _downgraded(record, targets, static, topics)
    outcome = _unreadable(compared)
    if outcome is None:
        named = {topic_id: topics and topics.topic_name(topic_id) for held in targets.values() for topic_id in held}
        names = {name for name in named.values() if name}
        existing = (
            {name for topic_id, name in named.items() if name and topic_id in image.by_id}
            for image in _images(topics, record, clock_slack_ms, names)
        )
        outcome = _judge(compared, existing, gap, record)
    return downgraded_row(record, outcome)


def _downgraded(
    record: GroupMetadataRecord,
    targets: Mapping[str, Mapping[str, Iterable[int]]],
    static: Mapping[str, str],
    topics: TopicHistory | None,
) -> _Comparison:
    """Compare the generation's assignments with the consumer group's targets; ``static`` has members by instance id."""
    expected: dict[str, Named | None] = {}
    recorded: dict[str, Named | None] = {}
    fitted = "the consumer group's last target"
    assert record.value is not None
    for member in record.value["members"]:
        member_id = member["memberId"]
        holder = member_id if member_id in targets else static.get(member.get("groupInstanceId") or "", member_id)
        expected[member_id] = _by_name(targets.get(holder, {}), topics)
        try:
            recorded[member_id] = _assigned(member["assignment"])
        except DecodeError as error:
            return _Comparison(expected, recorded, fitted, error)
    return _Comparison(expected, recorded, fitted)


def _unreadable(compared: _Comparison) -> Judgement | None:
    """Return the verdict where partitions are not known, None where they are."""
    if compared.unreadable is not None:
        return undecided(f"a readable assignment: {compared.unreadable}")
    if any(work is None for work in (*compared.expected.values(), *compared.recorded.values())):
        return undecided(TOPIC_NAMES_MISSING)
    return None


def _judge(
    compared: _Comparison, existing: Iterable[set[str]], gap: GroupGap | None, record: CoordinatorRecord
) -> Judgement:
    """Return the verdict; ``existing`` are the topics that exist, by each image that the coordinator may have had.

    ``record`` ends the operation. Where records may be missing, what is left of the members fits only if the whole
    batch is there, and if a member has anything.
    """
    expected, recorded = (_whole(works) for works in (compared.expected, compared.recorded))
    if gap is not None and (gap.is_after(record.batch if record.batch >= 0 else None) or not recorded):
        return undecided(gap.missing)
    if expected == recorded:
        return identical(compared.fitted)
    for names in existing:
        known = {
            member: {name: held for name, held in work.items() if name in names} for member, work in expected.items()
        }
        if _whole(known) == recorded:
            return identical(f"{compared.fitted}, without topics that were deleted")
    if gap is not None:
        return undecided(gap.missing)
    return divergent_copy(tuple(differences(expected, recorded, str)), record)


def _images(
    history: TopicHistory | None, record: CoordinatorRecord, clock_slack_ms: int, names: set[str]
) -> Iterator[TopicImage]:
    """The images, different in these topics, that a coordinator whose clock is that far off may have had at a record.

    Where topics change within a millisecond, or clocks differ, times do not say which of them it was.
    """
    if history is not None:
        at = record.at.timestamp_ms
        for version in reversed(history.window(at - clock_slack_ms, at + clock_slack_ms, names)):
            yield version.image


def _whole(assignment: Mapping[str, Named | None]) -> dict[str, Named]:
    """Without members that have nothing."""
    return {member: work for member, work in assignment.items() if work}


def _assigned(assignment: bytes | None) -> Named:
    """Return the partitions of an assignment blob, none for an empty one; raise DecodeError."""
    return {topic: set(numbers) for topic, numbers in assigned_partitions(assignment)[0]} if assignment else {}


def _by_name(partitions: Mapping[str, Iterable[int]], history: TopicHistory | None) -> Named | None:
    """By topic name; None where a topic id has none."""
    named: Named = {}
    for topic_id, numbers in partitions.items():
        name = history.topic_name(topic_id) if history else None
        if name is None:
            return None
        named[name] = set(numbers)
    return named


def _partitions(record: MemberTargetRecord) -> dict[str, list[int]]:
    value = record.value
    return recorded_partitions(value) if value is not None and "topicPartitions" in value else {}
