"""Rules of group epochs and target assignments that hold for consumer, share and streams groups."""

from typing import NamedTuple

from coordinator_core.audit.rules.holders import HOLDS_NOTHING, minus, name
from coordinator_core.audit.rules.judged_group import JudgedGroup, begins_anew
from coordinator_core.audit.rules.known_facts import HeldUnit
from coordinator_core.cluster.clocks import CLOCK_TOLERANCE_MS, METADATA_LAG_MS
from coordinator_core.durations import duration
from coordinator_core.groups.epoch_records import (
    AssignedPartitions,
    CurrentRecord,
    GroupEpochRecord,
    MemberTargetRecord,
    TargetEpochRecord,
)
from coordinator_core.groups.epochs import INITIAL_EPOCH, EpochGroup
from coordinator_core.groups.rules import ASSIGNMENT_EPOCH, EPOCH, TARGET, Rule
from coordinator_core.groups.streams.state import StreamsGroup
from coordinator_core.history.held_units import CONSUMER_KIND, STREAMS_KIND, EpochKind
from coordinator_core.history.holdings import Held, WorkUnit
from coordinator_core.history.topics_of_epochs import hash_of_topics, topics_used
from coordinator_core.records import CoordinatorRecord, LogPosition

MAX_ASSIGNMENT_INTERVAL_MS = 15_000
"""The highest ``group.{consumer,share}.assignment.interval.ms`` that a broker accepts by default: its
``max.assignment.interval.ms`` is 15 s (KIP-1263). No log contains this static broker setting.
"""


class EpochsBefore(NamedTuple):
    """The epochs of a group before a record, and its metadata hash; None where the group has none.

    ``descriptions`` are the ``description_epochs`` of a streams group.
    """

    group: int | None
    assignment: int | None
    metadata_hash: int | None = None
    descriptions: tuple[int, int] | None = None


def epochs_before(kind: EpochKind, judged: JudgedGroup, record: CoordinatorRecord) -> EpochsBefore:
    """Return what the rules of epochs need to know about the group before the record."""
    state = judged.group.state
    if not isinstance(state, kind.state):
        return EpochsBefore(None, None)
    return EpochsBefore(state.group_epoch, state.assignment_epoch, state.metadata_hash, _descriptions(state))


def _descriptions(state: object) -> tuple[int, int] | None:
    return state.description_epochs if isinstance(state, StreamsGroup) else None


def on_epoch(kind: EpochKind, judged: JudgedGroup, record: GroupEpochRecord, epochs: EpochsBefore) -> None:
    """Judge group metadata: the epoch grows by one."""
    facts, value, at, before = judged.facts, record.value, record.at, epochs.group
    known = facts.knows(EPOCH)
    if value is None:
        _end(judged, at, epochs.assignment)
        return
    facts.note(EPOCH, at)
    operation = judged.operation
    operation.leaving.clear()
    operation.joining.clear()
    epoch = value["epoch"]
    judged.arrived(epoch, at)
    metadata_hash = hash_of_topics(record, judged.group.state, is_whole=bool(epochs.metadata_hash))
    _metadata_hash(kind, judged, metadata_hash, epochs.metadata_hash, at)
    # A later value of an epoch is seen by replay, which tells of one that went back.
    if not known or before is None or epoch < before:
        return
    if epoch == before:
        begins = before <= INITIAL_EPOCH or (operation.empty and begins_anew(epoch))
        # Brokers since 4.4 write an epoch again when a plugin has stored, or refused, the topology's description.
        if not begins and epochs.descriptions == _descriptions(judged.group.state):
            judged.broken(Rule.EPOCH_REPEATED, at, None, f"group epoch {epoch} was written again")
    elif epoch > before + 1 and before > INITIAL_EPOCH:
        judged.broken(Rule.EPOCH_SKIPPED, at, None, f"group epoch {epoch} follows {before}")


def _metadata_hash(
    kind: EpochKind, judged: JudgedGroup, metadata_hash: int | None, before: int | None, at: LogPosition
) -> None:
    """The hash is that of a version of the subscribed topics, not long out of date, if all versions are known.

    A streams group keeps the hash that it has when a member is fenced. A hash of topics that changed only after the
    record shows a clock that is wrong, and no wrong hash; one of no version at all may show another cluster.
    """
    topics = judged.topics
    if metadata_hash is None or topics is None or not judged.facts.whole or not topics.is_whole(at.timestamp_ms):
        return
    names = kind.subscribed(judged.group.state, topics)
    used = topics_used(topics, metadata_hash, names, at)
    whose = f"metadata hash {metadata_hash} of {', '.join(sorted(names)) or 'no topics'}"
    if used.proven is False:
        if (
            topics.is_of_groups
            and topics.newest_matching_hash(metadata_hash, names, topics.positions[-1].timestamp_ms) is None
        ):
            judged.broken(Rule.METADATA_HASH_WRONG, at, None, f"{whose}: no version of them has it")
        return
    if kind is STREAMS_KIND and metadata_hash == before:
        return
    later = topics.changes(
        names, used.version, topics.version_at(at.timestamp_ms - METADATA_LAG_MS - CLOCK_TOLERANCE_MS)
    )
    if later:
        age = at.timestamp_ms - later[0].at.timestamp_ms
        detail = f"{whose}: that of a version before {later[0].name} was {later[0].kind}, {duration(age)} ago"
        judged.broken(Rule.METADATA_HASH_WRONG, at, None, detail)


def _end(judged: JudgedGroup, at: LogPosition, epoch: int | None) -> None:
    """The group ends, its members and its target, of assignment epoch ``epoch``, having ended before."""
    facts = judged.facts
    if epoch not in (None, INITIAL_EPOCH) and facts.knows(ASSIGNMENT_EPOCH):
        detail = f"target assignment metadata of epoch {epoch} was not removed"
        judged.broken(Rule.GROUP_REMOVED_IN_PART, at, None, detail)
    judged.current.clear()
    judged.target.clear()
    operation = judged.operation
    if operation.leaving:
        operation.crossed, operation.crossed_epoch = at, operation.reached
        departed = ((member_id, operation.departed[member_id]) for member_id in operation.leaving)
        operation.converting = {member_id: seen.instance_id for member_id, seen in departed if seen.is_classic}
    operation.leaving.clear()
    operation.targetless = None
    facts.end_life(at, gone=judged.group.state is None)


def on_target(kind: EpochKind, judged: JudgedGroup, record: MemberTargetRecord, before: object = None) -> None:
    """Take in a member's target: the target of the group is complete only with the metadata record that ends it."""
    member_id, at, value = record.key["memberId"], record.at, record.value
    facts, operation = judged.facts, judged.operation
    facts.note_member(TARGET, member_id, at)
    if value is None:
        # Records without batches and times count as one operation: they do not tell what was written at once.
        if operation.batch >= 0 or operation.time_ms >= 0:
            left = minus(judged.target.held.get(member_id, HOLDS_NOTHING))
            operation.left_targets[member_id] = [HeldUnit(*unit, member_id) for unit in left]
        judged.target.put(member_id, {})
        judged.departing(member_id, TARGET, at, judged.member(member_id))
        return
    state = judged.group.state
    assert isinstance(state, kind.state)
    held = kind.wanted(state.targets[member_id])
    twice(judged, record, held)
    # The copy of a static member's target is of no new epoch: no metadata record follows it.
    if member_id not in operation.replaced:
        operation.targets[member_id] = at
    elif kind.exclusive:
        _copied(judged, operation.replaced[member_id], member_id, held, at)
    if kind.exclusive:
        for unit, _ in judged.target.put(member_id, held):
            operation.clashes.append(HeldUnit(*unit, member_id))


def _copied(judged: JudgedGroup, replaced: str, member_id: str, held: Held, at: LogPosition) -> None:
    """A static member that takes the place of another begins with its target; later ones are its own."""
    left = judged.operation.left_targets.pop(replaced, None)
    if left is None or not judged.facts.whole:
        return
    replaced_units = {HeldUnit(*unit, replaced) for unit in minus(held)}
    if replaced_units != set(left):
        detail = f"its target is not that of {replaced}, whose place it takes"
        judged.broken(Rule.REPLACEMENT_NOT_A_COPY, at, member_id, detail)


def on_target_epoch(kind: EpochKind, judged: JudgedGroup, record: TargetEpochRecord, epochs: EpochsBefore) -> None:
    """Judge target assignment metadata: a target for the group's present epoch is complete."""
    value, at = record.value, record.at
    facts, operation = judged.facts, judged.operation
    if value is None and epochs.assignment is not None and facts.knows(ASSIGNMENT_EPOCH):
        operation.reached, operation.targetless = epochs.assignment, at
    facts.note(ASSIGNMENT_EPOCH, at)
    operation.targets.clear()
    if value is None:
        return
    state = judged.group.state
    assert isinstance(state, EpochGroup)
    epoch = value["assignmentEpoch"]
    # Brokers after 4.4 compute targets beside the heartbeats, while epochs open (KIP-1263), and consumers that name no
    # topics join without one: they are in no target that was under way.
    is_beside = judged.may_be_after_4_4(at)
    lacking = sorted(state.members.keys() - state.targets.keys())
    if is_beside and kind is CONSUMER_KIND:
        lacking = [each for each in lacking if state.members[each].subscribed_topic_names]
    # While the group has moved on, the target is of an older epoch: new members are not in it.
    if lacking and facts.whole and epoch == state.group_epoch:
        judged.broken(Rule.TARGET_INCOMPLETE, at, lacking[0], f"the target of epoch {epoch} has no record of it")
    is_older = facts.knows(EPOCH) and state.group_epoch is not None and epoch < state.group_epoch
    if is_older and not is_beside:
        detail = f"assignment epoch {epoch} written while the group is at {state.group_epoch}"
        judged.broken(Rule.ASSIGNMENT_EPOCH_NOT_THE_GROUPS, at, None, detail)
    # Only now: while a target is written, a unit may be in the old part of one member and in the new one of another.
    for role, subject, partition, member_id in operation.clashes:
        unit = WorkUnit(role, subject, partition)
        others = [other for other in judged.target.others(unit, member_id) if facts.knows_member(TARGET, other)]
        if others and unit in judged.target.clashing and member_id in judged.target.clashing[unit]:
            judged.broken(Rule.TARGET_OF_TWO, at, member_id, f"{name(unit)} is also in the target of {others[0]}")
    operation.clashes.clear()


def twice(judged: JudgedGroup, record: MemberTargetRecord | CurrentRecord, *held: Held) -> None:
    """Judge the record's lists of partitions: none may contain a partition twice. ``held`` has each partition once."""
    assert record.value is not None
    # Counted first, as nearly no record has a unit twice: only if more is listed than is different, the lists are
    # searched.
    listed = 0
    for entries in record.value.values():
        if isinstance(entries, list):
            for entry in entries:
                listed += len(entry["partitions"])
    for units in held:
        for numbers in units.values():
            listed -= len(numbers)
    if not listed:
        return
    lists: list[tuple[str, list[AssignedPartitions]]]
    lists = [(field, entries) for field, entries in record.value.items() if isinstance(entries, list)]
    for field, entries in lists:
        doubled = _doubled(entries)
        if doubled:
            detail = f"{field}: {', '.join(doubled)}"
            judged.broken(Rule.UNIT_TWICE_IN_RECORD, record.at, record.key["memberId"], detail)


def _doubled(entries: list[AssignedPartitions]) -> list[str]:
    seen: set[tuple[object, int]] = set()
    doubled = []
    for entry in entries:
        subject = entry.get("topicId") or entry.get("subtopologyId")
        for partition in entry["partitions"]:
            if (subject, partition) in seen:
                doubled.append(f"{subject}-{partition}")
            seen.add((subject, partition))
    return doubled
