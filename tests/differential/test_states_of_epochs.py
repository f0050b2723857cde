"""The state of an epoch is the one that ``describe`` gives of its group, after each operation."""

from collections import Counter
from itertools import pairwise

import pytest

from coordinator_core.groups.describe import group_state
from coordinator_core.groups.group import Group
from coordinator_core.history.history_fold import GroupFold
from coordinator_core.records import CoordinatorRecord, RecordType
from tests.differential.logs_by_group import corpus_log
from tests.differential.metadata import topic_history
from tests.shared_data import CORPUS


def is_over(record: CoordinatorRecord, following: CoordinatorRecord | None) -> bool:
    """Whether the operation of a record is over; a commit is none of an epoch."""
    if record.type <= RecordType.OFFSET_COMMIT:
        return False
    return following is None or (following.batch, following.at.timestamp_ms) != (record.batch, record.at.timestamp_ms)


@pytest.mark.parametrize("corpus", ["scenarios", "misc", "upgrade", "wild"])
def test_the_state_of_an_epoch_is_that_of_its_group(corpus: str) -> None:
    log, topics = corpus_log(corpus), topic_history(CORPUS / corpus / "logs")
    compared = Counter[str | None]()
    for records in log.groups.values():
        fold = GroupFold(Group("g", from_start=True), topics=topics, coverage=log.coverage)
        for record, following in pairwise([*records, None]):
            assert record is not None
            fold.feed(record)
            epoch, state = fold.open_history.epoch, group_state(fold.group)
            # A member of a new group may wait for its regex without an epoch; a deleted group has no state.
            if is_over(record, following) and epoch is not None and state is not None:
                assert (record.at.offset, epoch.state) == (record.at.offset, state)
                compared[state] += 1
    assert compared["STABLE"] > 10
