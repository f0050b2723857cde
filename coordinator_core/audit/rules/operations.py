"""Rules of what the coordinator always writes together, judged when an operation is complete, and of where and when a
group's records are written, whatever they say: log partition, leader epoch, time.
"""

from coordinator_core.audit.rules.judged_group import JudgedGroup
from coordinator_core.audit.rules.known_facts import WriteGroup
from coordinator_core.cluster.clocks import CLOCK_TOLERANCE_MS
from coordinator_core.durations import duration
from coordinator_core.groups.epochs import EpochGroup
from coordinator_core.groups.log_partition import log_partition_of
from coordinator_core.groups.rules import CURRENT, MEMBER, TARGET, Rule
from coordinator_core.records import GROUP_LOG, AnyRecord, CoordinatorRecord, Family, LogPosition

TOMBSTONES = frozenset((MEMBER, TARGET, CURRENT))


def begin(judged: JudgedGroup, record: CoordinatorRecord) -> None:
    """Take in a record: it begins an operation, or belongs to the one under way."""
    operation = judged.facts.operation
    if operation is not None:
        # Records of one time and batch are one operation; only the next record tells that it is over.
        if operation.batch == record.batch and operation.time_ms == record.at.timestamp_ms:
            return
        end(judged, operation)
    state = judged.group.state
    empty = state is None or not state.members
    # A batch begins with its first record; and behind another record, without a gap, nothing of it can be missing.
    # One with a gap in it begins again.
    facts, at = judged.facts, record.at
    is_whole = facts.whole or record.batch == at.offset or at.offset > facts.run
    judged.facts.operation = WriteGroup(record.at.timestamp_ms, record.batch, record.at, empty=empty, is_whole=is_whole)


def end(judged: JudgedGroup, operation: WriteGroup) -> None:
    """Judge an operation that is complete: records that it should contain and does not are violations."""
    if not operation.is_whole:
        return
    for member_id, departure in operation.departed.items():
        lacking = sorted(TOMBSTONES - set(departure.kinds))
        if lacking:
            detail = f"no tombstone of {' and '.join(lacking)}"
            judged.broken(Rule.MEMBER_REMOVED_IN_PART, departure.at, member_id, detail)
    for member_id, at in operation.leaving.items():
        judged.broken(Rule.DEPARTURE_WITHOUT_EPOCH, at, member_id, "it left, but no new group epoch was opened")
    for member_id, at in operation.joining.items():
        judged.broken(Rule.JOIN_WITHOUT_EPOCH, at, member_id, "it joined, but no new group epoch was opened")
    for member_id, at in operation.unassigned.items() if _moves_joiners(judged) else ():
        judged.broken(Rule.JOIN_WITHOUT_ASSIGNMENT, at, member_id, "it joined, but got no current assignment")
    if operation.crossed is not None:
        judged.broken(
            Rule.TYPE_CHANGED_IN_PART,
            operation.crossed,
            None,
            "removed with members; no group of another type followed",
        )
    if operation.targetless is not None:
        detail = "the target assignment metadata was removed, but not the group"
        judged.broken(Rule.GROUP_REMOVED_IN_PART, operation.targetless, None, detail)
    for member_id, at in operation.targets.items():
        judged.broken(Rule.TARGET_WITHOUT_EPOCH, at, member_id, "no target assignment metadata followed")


def _moves_joiners(judged: JudgedGroup) -> bool:
    """Whether a member that joins gets an epoch of its own: not in a group that was converted at generation 0."""
    state = judged.group.state
    return not isinstance(state, EpochGroup) or state.assignment_epoch != 0


def begin_partition(judged: JudgedGroup, at: LogPosition) -> None:
    """Judge the log partition of a group's first record there, and forget what other partitions had.

    The topic may have grown, and then groups move: any number of partitions that it ever had is accepted.
    """
    judged.facts.newest_ms = judged.facts.leader_epoch = -1
    topics, group = judged.topics, judged.group
    if group.family is not Family.GROUP or topics is None or not topics.is_whole(at.timestamp_ms):
        return
    counts = {interval.partitions for interval in topics.intervals([GROUP_LOG])}
    if not counts or at.partition >= max(counts):
        return
    given = {log_partition_of(group.group_id, count) for count in counts}
    if at.partition not in given:
        named = " or ".join(map(str, sorted(given)))
        detail = f"in partition {at.partition}; the hash of its id gives {named}"
        judged.broken(Rule.GROUP_IN_WRONG_PARTITION, at, None, detail)


def judge_batch(judged: JudgedGroup, record: AnyRecord, leader_epoch: int | None) -> None:
    """Judge the leader epoch of a record's batch (None: not known), and its time, by the group's records before it."""
    facts, at = judged.facts, record.at
    if leader_epoch is not None and leader_epoch >= 0:
        if leader_epoch < facts.leader_epoch:
            detail = f"leader epoch {leader_epoch} after {facts.leader_epoch}"
            judged.broken(Rule.LOG_LEADER_EPOCH_WENT_BACK, at, None, detail)
        facts.leader_epoch = max(facts.leader_epoch, leader_epoch)
    if at.timestamp_ms < 0:
        return
    if at.timestamp_ms < facts.newest_ms - CLOCK_TOLERANCE_MS:
        detail = f"{duration(facts.newest_ms - at.timestamp_ms)} before an earlier record"
        judged.broken(Rule.TIME_WENT_BACK, at, None, detail)
        facts.newest_ms = at.timestamp_ms  # the records after it are told once
    facts.newest_ms = max(facts.newest_ms, at.timestamp_ms)
