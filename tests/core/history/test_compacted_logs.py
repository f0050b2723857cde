"""History of compacted logs: a complete row is that of the whole log, and no other row states what it cannot know."""

from collections import Counter
from collections.abc import Iterable

import pytest

from coordinator_core.groups.group import Group
from coordinator_core.history.coverage import Coverage
from coordinator_core.history.rows import (
    AssignmentRow,
    Cause,
    GroupEpochRow,
    HistoryRow,
    MembershipRow,
    RebalanceRow,
    ShareInitializationRow,
)
from coordinator_core.records import CoordinatorRecord
from tests.core.compacted import compacted
from tests.core.recorded import EVERYTHING, sample
from tests.core.whole_log import fold

FIGURES = (
    "members",
    "members_before",
    "members_after",
    "units_moved",
    "units_moved_back",
    "units_lost",
    "idle_ms",
    "idle_max_ms",
    "time_to_target_ms",
    "time_to_converge_ms",
    "duration_min_ms",
    "duration_max_ms",
    "members_behind",
    "delayed_by",
    "first_epoch",
    "topics_proven",
)
"""What a row either knows or has null."""
IDENTITY = {
    GroupEpochRow: ("opened",),
    RebalanceRow: ("at",),
    MembershipRow: ("member_id", "joined"),
    AssignmentRow: ("member_id", "kind", "role", "resource", "partition", "since"),
    ShareInitializationRow: ("topic_id", "partition", "phase", "since"),
}


def key_of(row: HistoryRow) -> tuple[object, ...]:
    return (type(row).__name__, *(getattr(row, name) for name in IDENTITY[type(row)]))


def folded(records: list[CoordinatorRecord], coverage: Coverage) -> list[HistoryRow]:
    return list(
        fold(records, Group(records[0].group_id if records else "gone", from_start=True), sample()[1], coverage)
    )


def without_hints(causes: Iterable[Cause]) -> list[Cause]:
    """Without what the commits suggest: they are compacted as well."""
    return [each._replace(hint=None) for each in causes]


def is_rewritten(row: HistoryRow, truth: HistoryRow) -> bool:
    """Whether the generation that a classic rebalance came from was written again, and only the last time is left."""
    return isinstance(row, RebalanceRow) and row.group_type == "CLASSIC" and row.began_after_ms != truth.began_after_ms


@pytest.mark.parametrize("tombstones", [True, False])
def test_a_complete_row_is_that_of_the_whole_log(tombstones: bool) -> None:
    tally: Counter[tuple[str, bool]] = Counter()
    for records in sample()[0].values():
        truth = {key_of(row): row for row in folded(records, EVERYTHING)}
        offsets = [record.at.offset + 1 for record in records]
        for until in offsets[:: max(len(offsets) // 12, 1)]:
            left, coverage = compacted(records, until, tombstones=tombstones)
            for row in folded(left, coverage):
                known = truth.get(key_of(row))
                tally[type(row).__name__, row.history_complete] += 1
                if known is None:
                    assert not row.history_complete, row
                elif row.history_complete and not is_rewritten(row, known):
                    for name in row._fields:
                        if name == "causes":
                            assert without_hints(row.causes) == without_hints(known.causes)
                        elif name not in ("hint", "members_before"):
                            assert getattr(row, name) == getattr(known, name), (name, row, known)
                for name in set(row._fields).intersection(FIGURES):
                    if known is not None and not is_rewritten(row, known):
                        assert getattr(row, name) in (None, getattr(known, name)), (name, row, known)
    assert all(tally[each.__name__, complete] > 50 for each in IDENTITY for complete in (True, False)), tally
