"""Nights that return only what has changed leave the same rows as one pass."""

import random
from collections.abc import Callable, Iterable
from operator import attrgetter
from typing import Any

import pytest

from coordinator_core.audit.audited_rows import AUDITED_TABLES, AuditedRow
from coordinator_core.audit.group_audit import changed
from coordinator_core.groups.violations import Violation
from coordinator_core.records import Family
from tests.core.audit.test_state_order import SAMPLES, SHOP, begun, read, resumed

KEYS: dict[type, Callable[[Any], Any]] = {table.row: attrgetter(*table.key) for table in AUDITED_TABLES}


class TablesOfGroup:
    """The rows of one group by key, as replay merges them: a row that may change is replaced."""

    def __init__(self) -> None:
        self.rows: dict[Any, AuditedRow] = {}
        self.merged = 0

    def merge(self, rows: Iterable[AuditedRow]) -> None:
        for row in rows:
            self.rows[type(row), KEYS[type(row)](row)] = row
            self.merged += 1

    def end_night(self, rows: Iterable[AuditedRow]) -> None:
        """Open violations are deleted before those of the night are merged."""
        self.rows = {key: row for key, row in self.rows.items() if not (isinstance(row, Violation) and row.is_open)}
        self.merge(rows)


@pytest.mark.parametrize("folder", [SAMPLES, SHOP], ids=["samples", "shop"])
def test_rows_that_have_changed_are_enough_each_night(folder: Any) -> None:
    groups, topics = read(folder)
    chance, left_out = random.Random(7), 0
    for (family, group_id), records in groups.items():
        whole, nightly = TablesOfGroup(), TablesOfGroup()
        fold = begun(family, group_id, topics)
        night = begun(family, group_id, topics)
        ends = {*chance.sample(range(len(records)), min(6, len(records))), len(records) - 1}
        for number, record in enumerate(records):
            whole.merge(fold.feed(record, 0))
            nightly.merge(night.feed(record, 0))
            if number in ends:
                all_open = night.open_rows()
                some = night.changed_rows()
                nightly.end_night(some)
                left_out += len(all_open) - len(some)
                night = resumed(night.state(), family, topics)
        whole.end_night(fold.changed_rows())
        assert nightly.rows == whole.rows
        assert fold.changed_rows() == [row for row in fold.open_rows() if isinstance(row, Violation)]
        assert night.state() == fold.state()
    assert left_out > 100
    assert Family.GROUP in {family for family, _ in groups}


def test_a_row_is_changed_by_each_of_its_columns() -> None:
    first, known = changed([("a", 1, None), ("b", 2, (3, "c"))], b"")
    assert first == [("a", 1, None), ("b", 2, (3, "c"))]
    assert changed([("b", 2, (3, "c")), ("a", 1, None)], known) == ([], known)
    others: list[tuple[object, ...]] = [("a", 1, 0), ("b", 2, (3, "d")), ("b", None, (3, "c")), ("b", 2, 3, "c")]
    assert changed(others, known)[0] == others
    assert changed([("b", 2, (3, "c"))], known)[1] != known, "what is not open any more is not known any more"
