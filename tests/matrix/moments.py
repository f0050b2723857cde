"""The moment at which logs are asked, and whether logs that lack something still tell its time."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from coordinator_core.records import GROUP_LOG, Family
from jobs.sources.files import find_logs
from jobs.sources.log_reader import LogReader, by_partition, log_rows

Moment = Mapping[int, int]
"""By partition of the log of groups the offset up to which it is asked (excluded)."""


def moment(folder: Path, partitions: Sequence[int]) -> Moment:
    """Return one moment of all partitions: the time in the middle of the longest one."""
    times = _times(folder, partitions)
    longest = max(times.values(), key=len)
    _, then = longest[len(longest) // 2]
    return {number: next((at for at, ms in rows if ms >= then), rows[-1][0] + 1) for number, rows in times.items()}


def arguments(asked: Moment) -> list[str]:
    """Return the moment as the values of ``--at-offset``."""
    return [f"{number}:{offset}" for number, offset in asked.items()]


def hides_time(asked: Moment, whole: Path, left: Path) -> bool:
    """Whether what is left lacks a record of the whole logs that tells when the moment is: in each partition the last
    one below the offset, and the next one.
    """
    return _around(asked, whole) != _around(asked, left)


def _around(asked: Moment, folder: Path) -> dict[int, list[tuple[int, int]]]:
    times = _times(folder, asked)
    around = {}
    for number, offset in asked.items():
        rows = times.get(number, [])
        below = sum(at < offset for at, _ in rows)
        around[number] = rows[max(below - 1, 0) : below + 1]
    return around


def _times(folder: Path, partitions: Collection[int]) -> dict[int, list[tuple[int, int]]]:
    """Return offset and time (ms) of each record, by partition that is there."""
    places = [folder / f"{GROUP_LOG}-{number}" for number in partitions]
    logs = find_logs([place for place in places if place.exists()])
    return {
        number: [
            (row.offset, row.timestamp) for batch in LogReader(files, _ignore).batches() for row in log_rows(batch)
        ]
        for number, files in by_partition(logs).get(Family.GROUP, {}).items()
    }


def _ignore(_: str) -> None:
    """What cannot be read is not there."""
