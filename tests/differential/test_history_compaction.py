"""Compaction takes history away, but never makes a wrong one: what is said to be complete is what the full log says."""

from collections import Counter

import pytest

from coordinator_core.groups.group import Group
from tests.core.whole_log import fold
from tests.differential.histories import groups_of, key_of
from tests.differential.logs_by_group import corpus_log
from tests.differential.metadata import topic_history
from tests.shared_data import CORPUS

ABOUT_COMMITS = ("hint", "causes")
"""Older commits of a key are compacted away, and with them what the hints of a departure are made of."""


@pytest.mark.parametrize(
    ("full", "compacted", "logs"),
    [
        ("scenarios", "scenarios/compacted_keep", "scenarios"),
        ("scenarios", "scenarios/compacted_drop", "scenarios"),
        ("churn/full", "churn/after_compaction", "churn/full"),
    ],
)
def test_complete_rows_of_a_compacted_log_are_those_of_the_full_one(full, compacted, logs):
    topics = topic_history(CORPUS / logs / "logs")
    everything = groups_of(full)
    ends: dict[int, int] = {}
    for records in everything.values():
        for record in records:
            ends[record.at.partition] = max(ends.get(record.at.partition, 0), record.at.offset)
    whole, left = corpus_log(full).coverage, corpus_log(compacted).coverage
    truth = {
        key_of(row): row
        for group, records in everything.items()
        for row in fold(records, Group(group, from_start=True), topics, whole)
    }
    tally: Counter[tuple[str, str]] = Counter()
    for group, records in groups_of(compacted).items():
        until = [record for record in records if record.at.offset <= ends[record.at.partition]]
        for row in fold(until, Group(group, from_start=True), topics, left):
            if not row.history_complete:
                tally[type(row).__name__, "not complete"] += 1
                continue
            known = truth[key_of(row)]
            for name in row._fields:
                if name not in ABOUT_COMMITS:
                    assert getattr(row, name) == getattr(known, name), (name, row)
            tally[type(row).__name__, "equal"] += 1
    for (row_type, outcome), count in sorted(tally.items()):
        print(f"{compacted}: {row_type}: {count} {outcome}")
    assert tally
