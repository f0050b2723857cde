"""Folding a real log night by night gives the rows of one pass, wherever it is split."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterable

import pytest

from coordinator_core.groups.group import Group
from coordinator_core.history.codec import decode_history, encode_history
from coordinator_core.history.fold import GroupFold
from coordinator_core.history.rows import TABLES, HistoryRow
from coordinator_core.records import CoordinatorRecord
from tests.differential.decoded import log_entries
from tests.differential.metadata import topic_history
from tests.shared_data import CORPUS

KEYS = {table.row: table.key for table in TABLES}


def key_of(row: HistoryRow) -> tuple[object, ...]:
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


def groups_of(corpus: str) -> dict[str, list[CoordinatorRecord]]:
    groups = defaultdict(list)
    for entry in log_entries(CORPUS / corpus / "decoded.jsonl.gz"):
        if entry.record is not None:
            groups[entry.record.group_id].append(entry.record)
    return groups


@pytest.mark.parametrize("corpus", ["scenarios", "misc", "upgrade", "churn/full", "churn/after_compaction"])
def test_nights_give_the_tables_of_one_pass(corpus):
    topics = topic_history(CORPUS / corpus / "logs")
    chance = random.Random(7)
    for group_id, records in groups_of(corpus).items():
        whole = Tables()
        fold = GroupFold(Group(group_id), topics=topics)
        for record in records:
            whole.append(fold.feed(record))
        whole.upsert(fold.open_rows())

        nightly = Tables()
        state = encode_history(fold := Group(group_id), GroupFold(fold).ledger)
        splits = sorted(chance.sample(range(len(records) + 1), min(20, len(records) + 1)))
        for start, end in zip([0, *splits], [*splits, len(records)], strict=True):
            night = GroupFold(*decode_history(state), topics=topics)
            for record in records[start:end]:
                nightly.append(night.feed(record))
            nightly.upsert(night.open_rows())
            state = encode_history(night.group, night.ledger)
        assert nightly.rows == whole.rows
        assert nightly.final == whole.final
