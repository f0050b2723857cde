"""Targets that no assignor made: copies, when a group changes between classic and consumer protocol (KIP-848)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from coordinator_core.assignors.coordinator_view import SubscriptionView
from coordinator_core.audit.rows import Basis, TargetAuditRow, Verdict
from coordinator_core.audit.targets.classic_groups import generation_row
from coordinator_core.audit.targets.group_view import recorded_partitions
from coordinator_core.audit.targets.operation import TargetOperation
from coordinator_core.audit.targets.verdict import MOST_DIFFERENCES, Judgement, differences
from coordinator_core.cluster.image import TopicImage
from coordinator_core.cluster.topic_history import TopicHistory
from coordinator_core.errors import DecodeError
from coordinator_core.groups.consumer_protocol import assigned_partitions
from coordinator_core.groups.group import GroupType
from coordinator_core.groups.record_types import CONSUMER
from coordinator_core.records import CoordinatorRecord

Named = dict[str, set[int]]
"""A member's partitions by topic name."""

NO_TOPICS = "names of topic ids: supply the cluster metadata log or topic snapshots"


def upgrade_row(
    opened: CoordinatorRecord,
    operation: TargetOperation,
    classic: Mapping[str, bytes],
    instances: Mapping[str, str],
    history: TopicHistory | None,
    clock_slack_ms: int,
    gap: str | None,
) -> TargetAuditRow:
    """The first target of a consumer group made of a classic one.

    ``classic`` are the last assignments of its members, by member id and by instance id: a static member may have come
    back under another id, which the log does not say; ``instances`` are the instance ids of the members now. If it had
    expired before, it has nothing. A group converted in the middle of a rebalance has nothing assigned at all.
    """
    recorded: dict[str, Named | None] = {
        each.key["memberId"]: _by_name(_partitions(each), history) for each in operation.targets
    }
    unread, story = None, "the classic group's assignment"
    try:
        expected: dict[str, Named | None] = {}
        for member, held in recorded.items():
            mine = classic.get(member, classic.get(instances.get(member, "")))
            if mine and member not in classic and not held:
                mine, story = None, f"{story}; static member {member} had expired and come anew"
            expected[member] = {topic: set(numbers) for topic, numbers in assigned_partitions(mine)[0]} if mine else {}
    except DecodeError as error:
        expected, unread = {}, f"an assignment that can be read: {error}"
    names = {topic for held in expected.values() if held for topic in held}
    there = (names & image.by_name.keys() for image in _images(history, operation.end, clock_slack_ms, names))
    judged, missing, fitted = _judge(expected, recorded, there, gap, story)
    if judged.verdict is Verdict.DIVERGENT and not any(recorded.values()):
        judged, fitted = Judgement(Verdict.IDENTICAL), "nothing, as the classic group was rebalancing"
    end = operation.end
    return TargetAuditRow(
        group_id=end.group_id,
        group_type=GroupType.CONSUMER,
        epoch=(end.value or {})["assignmentEpoch"],
        at=end.at,
        opened=opened.at,
        verdict=Verdict.UNKNOWN if unread else judged.verdict,
        basis=Basis.UPGRADE,
        assignor=None,
        fitted=fitted,
        missing=unread or missing,
        differences=judged.differences,
        difference_count=judged.difference_count,
        members=len(recorded),
        expected=None,
        recorded=None,
        topics_at=None,
        topics_proven=None,
    )


def downgrade_row(
    record: CoordinatorRecord,
    view: SubscriptionView,
    batch: Iterable[CoordinatorRecord],
    history: TopicHistory | None,
    clock_slack_ms: int,
    gap: str | None,
) -> TargetAuditRow:
    """The first generation of a classic group made of a consumer group.

    ``view`` is the consumer group before ``batch``, the records of this operation before ``record``.
    """
    targets: dict[str, Mapping[str, Iterable[int]]] = dict(view.targets)
    static = dict(view.static)
    for each in batch:
        if each.type == CONSUMER.target and each.value is not None:
            targets[each.key["memberId"]] = _partitions(each)
        elif each.type == CONSUMER.member and each.value is not None and each.value.get("instanceId"):
            static.setdefault(each.value["instanceId"], each.key["memberId"])
    expected: dict[str, Named | None] = {}
    recorded: dict[str, Named | None] = {}
    for member in (record.value or {})["members"]:
        member_id = member["memberId"]
        holder = member_id if member_id in targets else static.get(member.get("groupInstanceId") or "", member_id)
        expected[member_id] = _by_name(targets.get(holder, {}), history)
        try:
            mine = assigned_partitions(member["assignment"])[0] if member["assignment"] else []
        except DecodeError as error:
            return generation_row(
                record,
                Judgement(Verdict.UNKNOWN),
                basis=Basis.DOWNGRADE,
                missing=f"an assignment that can be read: {error}",
            )
        recorded[member_id] = {topic: set(numbers) for topic, numbers in mine}
    named = {topic_id: history and history.topic_name(topic_id) for held in targets.values() for topic_id in held}
    names = {name for name in named.values() if name}
    there = (
        {name for topic_id, name in named.items() if name and topic_id in image.by_id}
        for image in _images(history, record, clock_slack_ms, names)
    )
    judged, missing, fitted = _judge(expected, recorded, there, gap, "the consumer group's last target")
    return generation_row(record, judged, basis=Basis.DOWNGRADE, fitted=fitted, missing=missing)


def _judge(
    expected: Mapping[str, Named | None],
    recorded: Mapping[str, Named | None],
    there: Iterable[set[str]],
    gap: str | None,
    story: str,
) -> tuple[Judgement, str | None, str | None]:
    """Verdict, what is missing, what fitted; None as partitions: no name known.

    ``there`` are the topics that exist, by each image that the coordinator may have had.
    """
    if any(each is None for each in (*expected.values(), *recorded.values())):
        return Judgement(Verdict.UNKNOWN), NO_TOPICS, None
    ours, theirs = (_whole(each) for each in (expected, recorded))
    if ours == theirs:
        return Judgement(Verdict.IDENTICAL), None, story
    for names in there:
        known = {member: {name: held for name, held in work.items() if name in names} for member, work in ours.items()}
        if _whole(known) == theirs:
            return Judgement(Verdict.IDENTICAL), None, f"{story}, without topics that were deleted"
    found = tuple(differences(ours, theirs, str))
    verdict = Verdict.DIVERGENT if gap is None else Verdict.UNKNOWN
    return Judgement(verdict, found[:MOST_DIFFERENCES], len(found)), gap, None


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


def _by_name(partitions: Mapping[str, Iterable[int]], history: TopicHistory | None) -> Named | None:
    """By topic name; None where a topic id has none."""
    named: Named = {}
    for topic_id, numbers in partitions.items():
        name = history.topic_name(topic_id) if history else None
        if name is None:
            return None
        named[name] = set(numbers)
    return named


def _partitions(record: CoordinatorRecord) -> dict[str, list[int]]:
    return recorded_partitions(record.value or {})
