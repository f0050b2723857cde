"""The moment at which logs are asked, and whether logs that lack something still tell its time."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from coordinator_core.errors import InputError
from coordinator_core.records import GROUP_LOG, Family
from jobs.sources.files import find_logs
from jobs.sources.log_reader import LogReader, by_partition, log_rows

Times = list[tuple[int, int]]
"""Offset and time (ms) of each record."""
ByPartition = Mapping[int, Times]
Moment = Mapping[int, int]
"""By partition of the log of groups the offset up to which it is asked (excluded)."""


def moment(times: ByPartition) -> Moment:
    """Return one moment of all partitions: the time in the middle of the longest one."""
    longest = max(times.values(), key=len)
    _, then = longest[len(longest) // 2]
    return {number: next((at for at, ms in rows if ms >= then), rows[-1][0] + 1) for number, rows in times.items()}


def arguments(asked: Moment) -> list[str]:
    """Return the moment as the values of ``--at-offset``."""
    return [f"{number}:{offset}" for number, offset in asked.items()]


class Gone(NamedTuple):
    """What is gone of logs: a record that tells when a moment is, and the end of a partition."""

    hides_time: bool
    loses_end: bool


def gone(asked: Moment, before: ByPartition, after: ByPartition) -> Gone:
    """Return what is gone of logs, of which these records were there ``before``, and these are ``after``.

    When a moment is tell in each partition the last record below the offset, and the next one.
    """
    pairs = [(offset, before[number], after.get(number, [])) for number, offset in asked.items()]
    return Gone(
        any(_around(offset, whole) != _around(offset, left) for offset, whole, left in pairs),
        any(whole[-1:] != left[-1:] for _, whole, left in pairs),
    )


def _around(offset: int, rows: Times) -> Times:
    below = sum(at < offset for at, _ in rows)
    return rows[max(below - 1, 0) : below + 1]


def times_of(folder: Path, partitions: Iterable[int]) -> ByPartition:
    """Return the records by partition that is there; none of logs that cannot be read at all."""
    places = [folder / f"{GROUP_LOG}-{number}" for number in partitions]
    try:
        logs = find_logs([place for place in places if place.exists()])
        return {
            number: [
                (row.offset, row.timestamp) for batch in LogReader(files, _ignore).batches() for row in log_rows(batch)
            ]
            for number, files in by_partition(logs).get(Family.GROUP, {}).items()
        }
    except InputError:
        return {}


def _ignore(_: str) -> None:
    """What cannot be read is not there."""
