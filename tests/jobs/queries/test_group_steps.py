"""The lives of a streams group: over each of them one topology says which tasks read a topic."""

import pytest

from coordinator_core.audit.folds.group_history import GroupHistory
from coordinator_core.history.lost_records import LostRecords
from coordinator_core.records import GROUP_LOG
from jobs.queries.group_rows import streams_lives
from tests.core.audit.histories import at, epoch

STREAMS = {"group_type": "STREAMS"}


@pytest.mark.parametrize(
    ("ranges", "expected"),
    [
        ([], [(0, 21), (40, None)]),
        ([(12, 14)], [(0, 11), (12, 21), (40, None)]),
        ([(25, 26)], [(0, 21), (25, 30), (40, None)]),
        ([(60, 80)], [(0, 21), (40, 51), (60, None)]),
    ],
)
def test_a_group_may_have_another_topology_behind_lost_records(
    ranges: list[tuple[int, int]], expected: list[tuple[int, int | None]]
) -> None:
    """What a group read before them is known, whatever it reads later."""
    epochs = [
        epoch(1, at(10), **STREAMS, ended=at(20), ended_by="next epoch", is_open=False),
        epoch(2, at(20), **STREAMS, ended=at(30), ended_by="group downgraded", is_open=False),
        epoch(2, at(30), group_type="CLASSIC", ended=at(40), ended_by="group upgraded", is_open=False),
        epoch(3, at(50), **STREAMS),
    ]
    history = GroupHistory("g", 0, epochs, lost=LostRecords(ranges={(GROUP_LOG, 0): ranges}))
    assert [(life.since, life.moment.offsets.get(0)) for life in streams_lives(history)] == expected
