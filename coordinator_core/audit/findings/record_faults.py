"""Records that brokers can no longer write, or with which they cannot load a log partition.

A coordinator writes the records of one operation in one batch, which has to fit into ``max.message.bytes`` of the
topic: beyond it, the group can no longer change. The classic group's record has the metadata and assignment of all
members, the target record of a Connect group on KIP-848 the work of all workers; the target of the other groups is a
batch of one record for each member.

Of known faults of Kafka only records that lie so in a log at rest count (KAFKA-20254). Those that a coordinator meets
in that order alone where the log is compacted while it loads (KAFKA-19862, KAFKA-21117) may lie so in a copy that was
made meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from coordinator_core.audit.finding_rows import FindingKind, FindingRow
from coordinator_core.audit.findings.thresholds import Thresholds
from coordinator_core.audit.folds.group_history import GroupHistory, RecordSize, counted
from coordinator_core.broker_log.events import BrokerEvent, EventKind
from coordinator_core.cluster.clocks import utc
from coordinator_core.cluster.snapshot_settings import Levels
from coordinator_core.groups.group_type import GroupType
from coordinator_core.records import GROUP_LOG, LOG_TOPICS, LogPosition
from coordinator_core.wire.schema import broker_log_faults, record_schemas

BROKER_LIMIT = 1_048_588
"""The default of ``message.max.bytes`` (1 MiB and the overhead of a batch), in bytes."""

_FAMILIES = {topic: family for family, topic in LOG_TOPICS.items()}


def near_limit(history: GroupHistory, limits: Thresholds) -> Iterator[FindingRow]:
    """Yield a finding for each record type, or else the batch, whose largest one comes close to the limit."""
    large = [record for record in history.sizes if record.size >= limits.record_bytes]
    of_one_record = [record for record in large if record.record_type is not None]
    for record in of_one_record or large:
        name = _name(record)
        largest = (
            f"one {name}" if record.record_type is not None else f"one batch of {record.records} records of the group"
        )
        percent = 100 * record.size // BROKER_LIMIT
        yield history.finding(
            FindingKind.RECORD_NEAR_LIMIT,
            record.size,
            f"{largest} takes {record.size} bytes as a batch, with keys and framing, {percent}% of what a broker takes "
            "by default (message.max.bytes): beyond it the coordinator cannot write it, and the group cannot change "
            "any more",
            [record.at],
            threshold=limits.record_bytes,
            subject=name,
        )


def _name(record: RecordSize) -> str | None:
    if record.record_type is None:
        return None
    return record_schemas(_FAMILIES[record.log_topic])[record.record_type].name


LATEST: Final = 1 << 15
"""A level of ``metadata.version`` that stands for any later release."""


def commits_before_streams(history: GroupHistory, limits: Thresholds) -> Iterator[FindingRow]:
    """Yield that commits of a streams group stand before its first record, where brokers are of a release with the
    fault: it takes them for those of a group without members, which is of another type.

    Lines of brokers' application logs name the release. Without them, the fault names the levels of
    ``metadata.version`` that such releases support, and up to which all that support them have it.
    """
    first = min((commit.first for commit in history.commits), key=lambda at: at.offset, default=None)
    begin, known = _begin(history), history.topics.levels
    if first is None or begin is None or not _is_before(first, begin):
        return
    releases = _releases(history)
    for fault in broker_log_faults():
        of_log = fault.get("log")
        if of_log is None:
            continue
        said = [line for release, line in releases if tuple(of_log["from"]) <= release <= tuple(of_log["to"])]
        is_certain = bool(said) or (None if releases or known is None else _may_have_it(of_log, known))
        if is_certain is None:
            continue
        place = f"{GROUP_LOG}-{begin.partition}"
        partitions = sum(_is_before(commit.first, begin) for commit in history.commits)
        whose = f"brokers are of such a release{f' ({said[0].reason}, {said[0].place})' if said else ''}"
        whose = whose if is_certain else "the metadata log leaves open which release it is"
        yield history.finding(
            FindingKind.WILL_NOT_LOAD if is_certain else FindingKind.MAY_NOT_LOAD,
            partitions,
            f"{of_log['releases']} cannot load {place} ({fault['issue']}, mended: {fault['mended']}), and {whose}: "
            f"since {utc(begin.timestamp_ms)} commits of streams group {history.group_id} for "
            f"{counted(partitions, 'partition')} stand before its first other record "
            f"({begin.partition}:{begin.offset})",
            [first, begin],
            subject=place,
            is_open=True,
        )


def _releases(history: GroupHistory) -> list[tuple[tuple[int, ...], BrokerEvent]]:
    """Return the release that the last line about it in each file of brokers' logs names."""
    last = {line.file: line for line in history.lines.of_kind[EventKind.BROKER_RELEASE] if line.reason}
    return [(tuple(map(int, (line.reason or "").split("."))), line) for line in last.values()]


def _may_have_it(of_log: Mapping[str, Any], known: Levels) -> bool | None:
    """Return whether brokers with these levels of ``metadata.version`` are of a release with the fault; False where it
    is open, None where they are not.
    """
    oldest, newest = known.oldest or 0, LATEST if known.newest is None else known.newest
    if newest < of_log["levels"][0] or oldest > of_log["levels"][1]:
        return None
    return bool(of_log["levels"][0] <= oldest and newest <= of_log["certain"])


def _begin(history: GroupHistory) -> LogPosition | None:
    """Return the first record of a group that was a streams group from its beginning on; None: it was not."""
    if not history.epochs or any(row.group_type != GroupType.STREAMS for row in history.epochs):
        return None
    records = [*(row.opened for row in history.epochs), *(row.joined for row in history.memberships)]
    return min(records, key=lambda at: at.offset)


def _is_before(at: LogPosition, begin: LogPosition) -> bool:
    return at.partition == begin.partition and at.offset < begin.offset
