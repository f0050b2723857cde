"""Folding a real log night by night gives the rows of one pass, wherever it is split."""

import random

import pytest

from coordinator_core.groups.group import Group
from coordinator_core.history.history_fold import GroupFold
from tests.core.stored import next_history
from tests.differential.histories import Tables, groups_of
from tests.differential.metadata import topic_history
from tests.shared_data import CORPUS


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
        night = GroupFold(Group(group_id))
        splits = sorted(chance.sample(range(len(records) + 1), min(20, len(records) + 1)))
        for start, end in zip([0, *splits], [*splits, len(records)], strict=True):
            night = next_history(night, topics)
            for record in records[start:end]:
                nightly.append(night.feed(record))
            nightly.upsert(night.open_rows())
        assert nightly.rows == whole.rows
        assert nightly.final == whole.final
