"""Records that brokers can no longer write, or with which they cannot load a log partition.

A coordinator writes the records of one operation in one batch, which has to fit into ``max.message.bytes`` of the
topic: beyond it, the group can no longer change. The classic group's record has the metadata and assignment of all
members, the target record of a Connect group on KIP-848 the work of all workers; the target of the other groups is a
batch of one record for each member.

Of known faults of Kafka only records that lie so in a log at rest count. Those that a coordinator meets
in that order alone where the log is compacted while it loads (KAFKA-19862, KAFKA-21117) may lie so in a copy that was
made meanwhile.
"""

from collections.abc import Iterator, Mapping
from itertools import pairwise
from operator import attrgetter
from typing import Any, Final

from coordinator_core.audit.finding_rows import FindingKind, FindingRow
from coordinator_core.audit.findings.thresholds import Thresholds
from coordinator_core.audit.folds.group_history import GroupHistory, RecordSize, counted
from coordinator_core.broker_log.all_files import has_fault, releases
from coordinator_core.broker_log.events import EventKind
from coordinator_core.cluster.clocks import utc
from coordinator_core.cluster.snapshot_settings import Levels
from coordinator_core.groups.group_type import GroupType
from coordinator_core.history.history_writer import END_NOT_SEEN
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


OFFSET: Final = attrgetter("offset")
Order = tuple[int, list[LogPosition], str]
"""How much stands in an order that a coordinator does not load, records that show it, and the order in words."""


def unloadable(history: GroupHistory, limits: Thresholds) -> Iterator[FindingRow]:
    """Yield that records of a group stand in an order that brokers of a release with a known fault cannot load.

    Lines of brokers' application logs name the release. Without them, the fault names the levels of
    ``metadata.version`` that such releases support, and up to which all that support them have it.
    """
    of_files, known = releases(history.lines.of_kind[EventKind.BROKER_RELEASE]), history.topics.levels
    for fault in broker_log_faults():
        of_log = fault.get("log")
        if of_log is None or (order := ORDERS[of_log["order"]](history)) is None:
            continue
        value, evidence, what = order
        said = [line for release, line in of_files.values() if has_fault(fault, release)]
        is_certain = bool(said) or (None if of_files else _may_have_it(of_log, known))
        if is_certain is None:
            continue
        place = f"{GROUP_LOG}-{evidence[-1].partition}"
        whose = f"brokers are of such a release{f' ({said[0].reason}, {said[0].place})' if said else ''}"
        whose = whose if is_certain else "what is given leaves open which release it is"
        yield history.finding(
            FindingKind.WILL_NOT_LOAD if is_certain else FindingKind.MAY_NOT_LOAD,
            value,
            f"{of_log['releases']} cannot load {place} ({fault['issue']}, mended: {fault['mended']}), and {whose}: "
            f"since {utc(evidence[-1].timestamp_ms)} {what} ({evidence[-1].partition}:{evidence[-1].offset})",
            evidence,
            subject=place,
            is_open=True,
        )


def _commits_before_streams(history: GroupHistory) -> Order | None:
    """Commits of a group that was a streams group from its beginning on, before its first record: they pass for those
    of a group without members, which is of another type.
    """
    if not history.epochs or any(row.group_type != GroupType.STREAMS for row in history.epochs):
        return None
    begin = min((*(row.opened for row in history.epochs), *(row.joined for row in history.memberships)), key=OFFSET)
    firsts = (commit.first for commit in history.commits)
    before = [at for at in firsts if at.partition == begin.partition and at.offset < begin.offset]
    what = f"commits of streams group {history.group_id} for {counted(len(before), 'partition')} stand before its first"
    return (len(before), [min(before, key=OFFSET), begin], f"{what} other record") if before else None


def _behind_consumers(history: GroupHistory) -> Order | None:
    """A share or streams group that stands behind a consumer group of its name, of which there is no tombstone."""
    for old, new in pairwise(history.epochs):
        ended = old.ended if old.ended_by == END_NOT_SEEN and old.group_type == GroupType.CONSUMER else None
        if ended is None or new.group_type not in (GroupType.SHARE, GroupType.STREAMS):
            continue
        if not history.lost.any_within(GROUP_LOG, ended.partition, old.opened.offset, ended.offset):
            what = (
                f"records of {new.group_type.lower()} group {history.group_id} stand behind those of a consumer group"
            )
            return 1, [old.opened, ended], f"{what} of that name, which has no tombstone"
    return None


ORDERS: Final = {"commits before streams": _commits_before_streams, "behind consumers": _behind_consumers}


def _may_have_it(of_log: Mapping[str, Any], known: Levels | None) -> bool | None:
    """Return whether brokers with these levels of ``metadata.version`` are of a release with the fault; False where it
    is open, None where they are not, or may as well be of any other.
    """
    if known is None:
        return None if of_log["levels"][0] else False
    oldest, newest = known.oldest or 0, LATEST if known.newest is None else known.newest
    if newest < of_log["levels"][0] or oldest > of_log["levels"][1]:
        return None
    return bool(of_log["levels"][0] <= oldest and newest <= of_log["certain"])
