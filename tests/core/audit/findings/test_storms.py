"""Storms against their plain definition: the windows that have enough rebalances, joined where they overlap."""

from collections.abc import Sequence
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from coordinator_core.audit.findings.rebalances import storms
from coordinator_core.audit.findings.thresholds import Thresholds
from coordinator_core.audit.folds.group_history import GroupHistory
from coordinator_core.records import LogPosition
from tests.core.audit.findings.test_findings import LIMITS
from tests.core.audit.histories import cause, rebalance

SHORT = replace(LIMITS, storm_window_ms=10, storm_rebalances=3)


def periods(times: Sequence[int], limits: Thresholds) -> list[tuple[int, int]]:
    """The number of rebalances of each storm, and of its fullest window: by comparing all with all."""
    windows = []
    for end in range(len(times)):
        begin = next(nth for nth in range(end + 1) if times[end] - times[nth] <= limits.storm_window_ms)
        if end - begin + 1 >= limits.storm_rebalances:
            windows.append((begin, end))
    joined: list[list[tuple[int, int]]] = []
    for window in windows:
        if joined and window[0] <= joined[-1][-1][1]:
            joined[-1].append(window)
        else:
            joined.append([window])
    return [(some[-1][1] - some[0][0] + 1, max(end - begin + 1 for begin, end in some)) for some in joined]


@given(st.lists(st.integers(0, 9), max_size=40))
def test_storms_are_the_windows_that_overlap(pauses: list[int]) -> None:
    times = [sum(pauses[: nth + 1]) for nth in range(len(pauses))]
    rows = [rebalance(nth + 1, LogPosition(0, 10 * nth, time)) for nth, time in enumerate(times)]
    storm_rows = storms(GroupHistory("g", 1_000, rebalances=rows), SHORT)
    found = [(int(row.detail.split(" ms, ")[1].split()[0]), row.value) for row in storm_rows]
    assert found == periods(times, SHORT)


def test_a_conversion_counts_in_no_storm_whoever_left_with_it() -> None:
    """That a worker left just before is told in the other log alone, which may not be there."""
    rows = [rebalance(nth + 1, LogPosition(0, 10 * nth, nth)) for nth in range(4)]
    left = cause("member_left_or_expired", "a", rows[0].at)
    for causes in ((cause("group_upgraded", None, rows[0].at),), (cause("group_upgraded", None, rows[0].at), left)):
        history = GroupHistory("g", 1_000, rebalances=[rows[0]._replace(causes=causes), *rows[1:]])
        assert [row.value for row in storms(history, SHORT)] == [3]
