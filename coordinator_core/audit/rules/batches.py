"""Rules of where and when a group's records are written, whatever they say: log partition, leader epoch, time."""

from __future__ import annotations

from coordinator_core.audit.rules.judged_group import JudgedGroup
from coordinator_core.cluster.clocks import CLOCK_TOLERANCE_MS
from coordinator_core.durations import duration
from coordinator_core.groups.log_partition import log_partition_of
from coordinator_core.groups.rules import Rule
from coordinator_core.records import GROUP_LOG, AnyRecord, Family, LogPosition


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


def judge(judged: JudgedGroup, record: AnyRecord, leader_epoch: int | None) -> None:
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
