"""Every group of every recorded log, stored and read back, is the same; so is what comes of it the next night."""

import pytest

from coordinator_core.groups.group import Group
from coordinator_core.records import CoordinatorRecord, RecordType
from tests.core.groups.stored_groups import decode_group, encode_group
from tests.differential.decoded import log_entries
from tests.shared_data import CORPUS

LOGS = ["scenarios", "scenarios/compacted_keep", "churn/full", "churn/after_compaction", "upgrade", "misc"]


def group_records(corpus: str) -> list[CoordinatorRecord]:
    entries = log_entries(CORPUS / corpus / "decoded.jsonl.gz")
    return [
        entry.record for entry in entries if entry.record is not None and entry.record.type > RecordType.OFFSET_COMMIT
    ]


def fold(groups: dict[str, Group], records: list[CoordinatorRecord]) -> dict[str, Group]:
    for record in records:
        groups.setdefault(record.group_id, Group(record.group_id, from_start=True)).apply(record)
    return groups


@pytest.mark.parametrize("corpus", LOGS)
def test_two_nights_give_what_one_gives(corpus: str) -> None:
    records = group_records(corpus)
    in_one = fold({}, records)
    half = len(records) // 2
    stored = [encode_group(group) for group in fold({}, records[:half]).values()]
    first_night = {group.group_id: group for group in map(decode_group, stored)}
    in_two = fold(first_night, records[half:])
    assert in_two == in_one
    for group_id, group in in_one.items():
        other = in_two[group_id]
        assert group.state is None or list(other.state.members) == list(group.state.members)  # type: ignore[union-attr]
