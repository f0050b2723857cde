"""Targets that no assignor made: copies, when a group changes between the classic protocol and that of consumer groups
(KIP-848) or of streams groups (KIP-1071).
"""

from collections.abc import Iterable, Iterator, Mapping

from coordinator_core.assignors.coordinator_view import StreamsView, SubscriptionView
from coordinator_core.assignors.inputs import Tasks
from coordinator_core.audit.rows import Basis, TargetAuditRow, Verdict
from coordinator_core.audit.targets.classic_groups import generation_row
from coordinator_core.audit.targets.group_view import recorded_partitions, recorded_tasks
from coordinator_core.audit.targets.operation import TargetOperation
from coordinator_core.audit.targets.verdict import (
    WHERE_TOPICS_ARE,
    GroupGap,
    Judgement,
    differences,
    differing,
    identical,
    undecided,
    units,
    verdict_row,
)
from coordinator_core.cluster.image import TopicImage
from coordinator_core.cluster.topic_history import TopicHistory
from coordinator_core.errors import DecodeError
from coordinator_core.groups.consumer_protocol import assigned_partitions, assigned_tasks
from coordinator_core.groups.epoch_records import MemberTargetRecord
from coordinator_core.groups.group_type import GroupType
from coordinator_core.groups.record_types import CONSUMER_RECORDS, STREAMS_RECORDS
from coordinator_core.record_fields.classic_group import GroupMetadataRecord
from coordinator_core.record_fields.consumer_group import ConsumerGroupMemberMetadataValue
from coordinator_core.records import AnyRecord, CoordinatorRecord

Named = dict[str, set[int]]
"""A member's partitions by topic name."""
ByMember = Mapping[str, Named | Tasks | None]
"""What members have, by member id; None: a topic id without a known name is in it."""

TOPIC_NAMES_MISSING = f"names of topic ids: {WHERE_TOPICS_ARE}"


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
    ids of the members after the conversion. A static member may have come back under another id, which the log does not
    say; if it had expired before, it has nothing.
    """
    recorded = {target.key["memberId"]: _by_name(_partitions(target), topics) for target in operation.targets}
    expected: dict[str, Named] = {}
    fitted = "the classic group's assignment"
    try:
        for member, held in recorded.items():
            assignment = classic.get(member, classic.get(instances.get(member, "")))
            if assignment and member not in classic and not held:
                assignment, fitted = None, f"{fitted}; static member {member} had expired and joined again"
            expected[member] = _assigned(assignment)
    except DecodeError as error:
        return _upgraded(opened, operation, GroupType.CONSUMER, _unreadable(error))
    names = {topic for held in expected.values() for topic in held}
    images = _images(topics, operation.end, clock_slack_ms, names)
    known = (_of_topics(expected, names & image.by_name.keys()) for image in images)
    outcome = _judge(expected, recorded, gap, operation.end, fitted, known)
    if outcome.verdict is Verdict.DIVERGENT and not any(recorded.values()):
        # A group converted in the middle of a rebalance has nothing assigned at all.
        outcome = identical("nothing, as the classic group was rebalancing")
    return _upgraded(opened, operation, GroupType.CONSUMER, outcome)


def streams_upgrade_row(
    opened: CoordinatorRecord, operation: TargetOperation, classic: Mapping[str, bytes], gap: GroupGap | None
) -> TargetAuditRow:
    """Return the row of the first target of a streams group converted from a classic one.

    ``classic`` has the last assignments of its members, by member id.
    """
    recorded = {target.key["memberId"]: _recorded_tasks(target) for target in operation.targets}
    try:
        expected = {member_id: assigned_tasks(classic.get(member_id, b"")) for member_id in recorded}
        outcome = _judge(expected, recorded, gap, operation.end, "the classic group's assignment")
    except DecodeError as error:
        outcome = _unreadable(error)
    return _upgraded(opened, operation, GroupType.STREAMS, outcome)


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
    assert record.value is not None
    expected: dict[str, Named | None] = {}
    for joined in record.value["members"]:
        member_id = joined["memberId"]
        holder = member_id if member_id in targets else static.get(joined.get("groupInstanceId") or "", member_id)
        expected[member_id] = _by_name(targets.get(holder, {}), topics)
    try:
        recorded = {joined["memberId"]: _assigned(joined["assignment"]) for joined in record.value["members"]}
    except DecodeError as error:
        return generation_row(record, _unreadable(error), basis=Basis.DOWNGRADE)
    named = {topic_id: topics and topics.topic_name(topic_id) for held in targets.values() for topic_id in held}
    images = _images(topics, record, clock_slack_ms, {name for name in named.values() if name})
    known = (
        _of_topics(expected, {name for topic_id, name in named.items() if name and topic_id in image.by_id})
        for image in images
    )
    outcome = _judge(expected, recorded, gap, record, "the consumer group's last target", known)
    return generation_row(record, outcome, basis=Basis.DOWNGRADE)


def streams_downgrade_row(
    record: GroupMetadataRecord, view: StreamsView, batch: Iterable[AnyRecord], gap: GroupGap | None
) -> TargetAuditRow:
    """Return the row of the first generation of a classic group converted from a streams group.

    ``view`` is the streams group before ``batch``, which has the records of this operation before ``record``. The
    classic protocol has no warm-up tasks: they are standby tasks there.
    """
    targets = dict(view.targets)
    for earlier in batch:
        if earlier.type == STREAMS_RECORDS.target and earlier.value is not None:
            targets[earlier.key["memberId"]] = _recorded_tasks(earlier)
    assert record.value is not None
    try:
        recorded = {member["memberId"]: assigned_tasks(member["assignment"]) for member in record.value["members"]}
        expected = {member_id: _without_warmups(targets.get(member_id, Tasks())) for member_id in recorded}
        fitted = "the streams group's last target; warm-up tasks are standby tasks"
        outcome = _judge(expected, recorded, gap, record, fitted)
    except DecodeError as error:
        outcome = _unreadable(error)
    return generation_row(record, outcome, basis=Basis.DOWNGRADE)


def _upgraded(
    opened: CoordinatorRecord, operation: TargetOperation, group_type: GroupType, judged: Judgement
) -> TargetAuditRow:
    end = operation.end
    row = verdict_row(end.group_id, group_type, operation.epoch_number, end.at, judged, Basis.UPGRADE)
    return row._replace(opened=opened.at, members=len({target.key["memberId"] for target in operation.targets}))


def _unreadable(error: DecodeError) -> Judgement:
    return undecided(f"a readable assignment: {error}")


def _judge(
    expected: ByMember,
    recorded: ByMember,
    gap: GroupGap | None,
    record: CoordinatorRecord,
    fitted: str,
    known: Iterable[ByMember] = (),
) -> Judgement:
    """Return the verdict; ``fitted`` says where the expected work comes from, ``known`` is what is left of it without
    the topics that were deleted, by each image that the coordinator may have had.

    ``record`` ends the operation. Where records may be missing, what is left of the members fits only if the whole
    batch is there, and if a member has anything. Records without times do not say which of them one operation wrote,
    nor which topics there were then.
    """
    if any(work is None for work in (*expected.values(), *recorded.values())):
        return undecided(TOPIC_NAMES_MISSING)
    has_anything = any(True for work in recorded.values() for _ in units(work))
    if gap is not None and (not has_anything or gap.is_after(record.batch if record.batch >= 0 else None)):
        return undecided(gap.missing)
    found = tuple(differences(expected, recorded, str))
    if not found:
        return identical(fitted)
    if any(next(differences(left, recorded, str), None) is None for left in known):
        return identical(f"{fitted}, without topics that were deleted")
    if gap is not None:
        return undecided(gap.missing)
    if record.at.timestamp_ms < 0:
        return undecided("the time of the records, which tells what was written together")
    return differing(Verdict.DIVERGENT, found)


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


def _of_topics(works: Mapping[str, Named | None], names: set[str]) -> dict[str, Named]:
    return {
        member: {name: held for name, held in (work or {}).items() if name in names} for member, work in works.items()
    }


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


def _recorded_tasks(record: MemberTargetRecord) -> Tasks:
    value = record.value
    return recorded_tasks(value) if value is not None and "activeTasks" in value else Tasks()


def _without_warmups(tasks: Tasks) -> Tasks:
    standby, warmup = tasks.standby, tasks.warmup
    return Tasks(
        tasks.active, {key: sorted({*standby.get(key, ()), *warmup.get(key, ())}) for key in {*standby, *warmup}}
    )
