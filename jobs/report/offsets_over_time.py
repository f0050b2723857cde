"""The commits of a group over time, as a page has them: few enough, and none beside records that are missing."""

from collections.abc import Iterator, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Final

from coordinator_core.audit.folds.commit_times import LENGTHS_MS, CommitPoint, begin_of_trail, thinned, trail_length
from coordinator_core.audit.folds.group_history import GroupHistory
from coordinator_core.history.lost_records import LostRecords
from coordinator_core.records import GROUP_LOG
from jobs.report.data import GroupDetail, OffsetsOverTime

MOST_POINTS: Final = 6_000
"""Commits of one group, of all its partitions together."""
NOTHING: Final = OffsetsOverTime((), (), (), (), begins=False)

Partition = tuple[str, int]


def offsets_over_time(history: GroupHistory) -> dict[Partition, OffsetsOverTime]:
    """Return the commits of each partition behind the last record that is missing."""
    found: dict[Partition, OffsetsOverTime] = {}
    first = {(row.topic, row.partition): row.first.offset for row in history.commits}
    for (topic, partition, log), of_one in groupby(history.trails, itemgetter(0, 1, 2)):
        begin, whole_from = first.get((topic, partition), 0), _whole_from(history.lost, log)
        since = max(begin, whole_from)
        points = [point for trail in of_one for point in trail.points if point.at >= since]
        is_first = whole_from == 0 and points[:1] != [] and points[0].at == begin
        found[topic, partition] = _columns(points, begins=is_first)
    return found


def _whole_from(lost: LostRecords, log_partition: int) -> int:
    """Return the offset from which on every record of a log partition was read."""
    place = GROUP_LOG, log_partition
    read = lost.read.get(place)
    return max(0 if read is None else read.whole_from, lost.last_of(place) + 1)


def fitting(group: GroupDetail, first_ms: int, last_ms: int) -> GroupDetail:
    """Return the group with commits in intervals that suit a report from the first to the last time.

    What log files and tables know is finer, or the same.
    """
    length_ms = trail_length(first_ms, last_ms)
    since_ms = begin_of_trail(last_ms, length_ms)
    longer = (each for each in LENGTHS_MS if each > length_ms)
    made = _thinned(group, length_ms, since_ms)
    while sum(len(row.over_time.times_ms) for row in made.offsets) > MOST_POINTS and (length := next(longer, None)):
        made = _thinned(made, length, since_ms)
    return made


def _thinned(group: GroupDetail, length_ms: int, since_ms: int) -> GroupDetail:
    rows = (row._replace(over_time=_thinned_row(row.over_time, length_ms, since_ms)) for row in group.offsets)
    return group._replace(offsets=tuple(rows))


def _thinned_row(row: OffsetsOverTime, length_ms: int, since_ms: int) -> OffsetsOverTime:
    points = thinned(_points(row), length_ms, since_ms)
    if len(points) == len(row.times_ms):  # of most rows: tables give them in intervals of that length
        return row
    begins = row.begins and points[:1] != [] and points[0].at == row.log_offsets[0]
    return _columns(points, begins=begins)


def _columns(points: Sequence[CommitPoint], *, begins: bool) -> OffsetsOverTime:
    return OffsetsOverTime(
        tuple(point.time_ms for point in points),
        tuple(point.offset for point in points),
        tuple(point.at for point in points),
        tuple(point.number - points[0].number for point in points),
        begins,
    )


def _points(over_time: OffsetsOverTime) -> Iterator[CommitPoint]:
    columns = over_time.times_ms, over_time.log_offsets, over_time.offsets, over_time.numbers
    return map(CommitPoint, *columns)
