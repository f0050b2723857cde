"""Share partitions over time (KIP-932): phases, and not each record."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from enum import StrEnum

from coordinator_core.history.rows import OffsetRange, SharePartitionRow
from jobs.report.data import ShareSpell, ShareTimeline

MOST_SHARE_PARTITIONS = 60
MOST_PHASES = 1200
"""Number of phases of all listed share partitions together."""


class SharedState(StrEnum):
    """What the state of a share partition shows."""

    UNSET = "no start offset yet"
    """The start offset is set by the first fetch."""
    WAITING = "records wait for redelivery"
    """Records were given back and wait for their next delivery."""
    IN_FLIGHT = "records in flight"
    """Between start and end are records without a state: delivered, and not acknowledged yet."""
    SETTLED = "nothing waits"
    """All records that the state names are settled."""
    UNKNOWN = "unknown"
    """The log lacks what was before."""


def share_timelines(rows: Iterable[SharePartitionRow]) -> tuple[Sequence[ShareTimeline], int]:
    """Return the first share partitions by name, and the number of all."""
    by_partition: defaultdict[str, list[SharePartitionRow]] = defaultdict(list)
    for row in rows:
        by_partition[f"{row.topic or row.topic_id} {row.partition}"].append(row)
    names = sorted(by_partition, key=lambda name: (name.rpartition(" ")[0], by_partition[name][0].partition))[
        :MOST_SHARE_PARTITIONS
    ]
    most = MOST_PHASES // max(1, len(names))
    return [_timeline(name, by_partition[name], most) for name in names], len(by_partition)


def _timeline(name: str, rows: list[SharePartitionRow], most: int) -> ShareTimeline:
    phases: list[ShareSpell] = []
    for row in sorted(rows, key=lambda row: (row.since.timestamp_ms, row.since.partition, row.since.offset)):
        phase = _phase(row)
        last = phases[-1] if phases else None
        if last is not None and _goes_on(last, phase):
            phases[-1] = _joined(last, phase)
        else:
            phases.append(phase)
    return ShareTimeline(name, tuple(phases[-most:]), max(0, len(phases) - most))


def _phase(row: SharePartitionRow) -> ShareSpell:
    return ShareSpell(
        phase=str(_phase_name(row)),
        since=row.since,
        until_ms=None if row.until is None else row.until.timestamp_ms,
        start_offset=row.start_offset,
        accepted=row.accepted_now,
        released=_records(row.released_now),
        archived=_records(row.given_up_now),
        redelivered=row.redelivered_now,
    )


def _phase_name(row: SharePartitionRow) -> SharedState:
    if row.start_offset is None or row.start_offset < 0:
        return SharedState.UNSET
    if row.available is None or row.unknown is None:
        return SharedState.UNKNOWN
    if row.available:
        return SharedState.WAITING
    return SharedState.IN_FLIGHT if row.unknown else SharedState.SETTLED


def _goes_on(last: ShareSpell, then: ShareSpell) -> bool:
    """Return whether nothing but acknowledgements happened: what is given back or given up begins a phase."""
    happened = then.released or then.archived or then.redelivered
    return last.phase == then.phase and last.until_ms == then.since.timestamp_ms and not happened


def _joined(first: ShareSpell, then: ShareSpell) -> ShareSpell:
    return first._replace(
        until_ms=then.until_ms, start_offset=then.start_offset, accepted=first.accepted + then.accepted
    )


def _records(ranges: Iterable[OffsetRange]) -> int:
    return sum(span.last - span.first + 1 for span in ranges)
