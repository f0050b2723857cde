"""What a page knows of the offsets that were committed at a moment is what the log says of that moment."""

from collections import Counter
from pathlib import Path

import pytest

from coordinator_core.audit.folds.commit_times import (
    HOUR_MS,
    MOST_TRAIL_INTERVALS,
    TRAIL_LENGTHS_MS,
    CommitPoint,
    TrailFold,
    begin_of_trail,
    thinned,
)
from coordinator_core.history.lost_records import LogExtent, LostRecords, Unreadable
from coordinator_core.records import GROUP_LOG
from jobs.queries.from_logs.answers import LogAnswers
from jobs.queries.from_logs.history import group_histories
from jobs.report.build import ReportHeader, build
from jobs.report.data import Offsets
from jobs.report.offsets_over_time import _whole_from
from jobs.serve.offsets import offsets_at
from jobs.settings import load
from jobs.sources.files import find_logs
from tests.core.audit.histories import all_shown
from tests.shared_data import ROOT

STEPS = [(1_000 * 7 * number, number) for number in range(3_000)]


def known(row: Offsets, time_ms: int) -> int | str | None:
    """Return what the page shows, as ``committedThen`` in ``moment.js``: an offset, "between" or "not here"."""
    times, numbers = row.over_time.times_ms, row.over_time.numbers
    index = sum(1 for time in times if time <= time_ms) - 1
    if index < 0:
        return None if row.over_time.begins else "not here"
    is_exact = index == len(times) - 1 or numbers[index + 1] == numbers[index] + 1
    return row.over_time.offsets[index] if is_exact else "between"


def test_an_exact_offset_is_what_the_log_says_of_the_moment():
    chosen = load(environment={})
    logs = find_logs([Path(ROOT, "data/samples/logs")])
    histories = group_histories(logs, pytest.fail, audit=chosen.audit, over_time=True)
    report = build(histories, chosen.findings, ReportHeader("sample", "1", 0, (), True, []), all_shown)
    group = next(each for each in report.groups if each.line.group_id == "A-coop-a2d7")
    answers, said = LogAnswers(logs, pytest.fail, lambda: chosen), Counter[str]()
    first, last = group.line.first_ms or 0, group.line.last_ms or 0
    for time_ms in range(first + 5_000, last, max((last - first) // 12, 1)):
        truth = {row[:2]: row.offset for row in offsets_at(answers, group.line.group_id, time_ms)}
        for row in group.offsets:
            shown = known(row, time_ms)
            said["exact" if not isinstance(shown, str) else shown] += 1
            assert isinstance(shown, str) or shown == truth.get((row.topic, row.partition)), (time_ms, row)
    assert said["exact"]
    assert not said["not here"]


def test_points_are_bounded_and_do_not_depend_on_when_they_were_thinned():
    fold = TrailFold()
    for time_ms, number in STEPS:
        fold.add(time_ms, number, number, number)
    found, every = fold.all(len(STEPS) - 1), [CommitPoint(time_ms, each, each, each) for time_ms, each in STEPS]
    assert len(found) <= 2 * MOST_TRAIL_INTERVALS + 1
    for length_ms in (fold.length_ms, TRAIL_LENGTHS_MS[-1]):
        since_ms = begin_of_trail(STEPS[-1][0], length_ms)
        assert thinned(found, length_ms, since_ms) == thinned(every, length_ms, since_ms)


def test_over_a_long_time_the_end_is_kept():
    fold = TrailFold()
    for number in range(400):
        fold.add(number * HOUR_MS // 2, number, number, number)
    found = fold.all(399)
    assert found[-1].at == 399
    assert found[0].time_ms >= begin_of_trail(found[-1].time_ms, HOUR_MS)


def test_a_clock_that_goes_back_does_not_move_what_was_committed_before():
    fold = TrailFold()
    for number, time_ms in enumerate((10, 50, 20, 3_000, -1)):
        fold.add(time_ms, number, number, number)
    assert [(point.time_ms, point.at) for point in fold.all(3)] == [(10, 0), (50, 2), (3_000, 3)]


class AskedOnce(list[tuple[int, int]]):
    """Ranges that are gone through once: a turn for each lost offset would take years."""

    def __iter__(self):
        assert self, "asked again"
        yield self.pop()


def test_what_is_missing_ends_with_the_last_lost_range_however_long_it_is():
    place = GROUP_LOG, 3
    lost = LostRecords(
        {place: AskedOnce([(5, 1 << 40)])},
        {place: {"g": Unreadable(2, 1 << 41)}},
        read={place: LogExtent(9, 1 << 42, 7)},
    )
    assert _whole_from(lost, 3) == (1 << 41) + 1
    assert _whole_from(lost, 4) == 0
    assert _whole_from(LostRecords(read={place: LogExtent(9, 99, 7)}), 3) == 7
