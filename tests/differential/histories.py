"""Rows of history by their keys, of recorded logs."""

from collections import defaultdict
from collections.abc import Iterable

from coordinator_core.history.rows import TABLES, HistoryRow
from coordinator_core.records import CoordinatorRecord
from tests.differential.decoded import log_entries
from tests.shared_data import CORPUS

KEYS = {table.row: table.key for table in TABLES}


def groups_of(corpus: str) -> dict[str, list[CoordinatorRecord]]:
    """The records of each group of a corpus, in log order."""
    groups = defaultdict(list)
    for entry in log_entries(CORPUS / corpus / "decoded.jsonl.gz"):
        if entry.record is not None:
            groups[entry.record.group_id].append(entry.record)
    return groups


def key_of(row: HistoryRow) -> tuple[object, ...]:
    """The key of a row, as its table says, with the name of its type."""
    values = []
    for path in KEYS[type(row)]:
        value: object = row
        for name in path.split("."):
            value = getattr(value, name)
        values.append(value)
    return (type(row).__name__, *values)


class Tables:
    """Final rows are appended, open ones replace those of their key."""

    def __init__(self) -> None:
        self.rows: dict[tuple[object, ...], HistoryRow] = {}
        self.final: set[tuple[object, ...]] = set()

    def append(self, rows: Iterable[HistoryRow]) -> None:
        for row in rows:
            key = key_of(row)
            assert key not in self.final, f"a second final row of {key}"
            assert not getattr(row, "is_open", False)
            self.final.add(key)
            self.rows[key] = row

    def upsert(self, rows: Iterable[HistoryRow]) -> None:
        for row in rows:
            assert key_of(row) not in self.final
            self.rows[key_of(row)] = row
